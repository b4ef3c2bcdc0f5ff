package secrets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

// Bounds of the length of a value. A shorter one occurs in other texts by
// chance, so that the runtime could not remove only the secret.
const (
	MinValue = 8
	MaxValue = 64 << 10
)

// ErrNotFound states that a source does not hold the secret.
var ErrNotFound = errors.New("the secret is not there")

// Source reads one secret. Each Open calls it. Several calls can call it
// concurrently. It must never put the value into an error.
type Source func(ctx context.Context) (string, error)

// Env is an environment variable, read by lookup, such as os.LookupEnv. Only
// the variable that is named here can be read. Env returns nil, which New
// refuses, without a variable or a lookup.
func Env(variable string, lookup func(string) (string, bool)) Source {
	if variable == "" || lookup == nil {
		return nil
	}
	return func(context.Context) (string, error) {
		value, ok := lookup(variable)
		if !ok {
			return "", fmt.Errorf("variable %s: %w", variable, ErrNotFound)
		}
		return value, nil
	}
}

// Store holds the sources of secrets, and caches the values that were opened,
// to remove them from records and output. It is a ctxperm.Driver and safe for
// concurrent use.
type Store struct {
	sources map[string]Source
	hidden  callstate.SecretValues
}

// New creates a store of sources by name: letters, digits and _.-, as in
// secret://name.
func New(sources map[string]Source) (*Store, error) {
	for name, source := range sources {
		if _, err := perm.KindSecret.Resource(name); err != nil {
			return nil, fmt.Errorf("secret %q: %w", name, err)
		}
		if source == nil {
			return nil, fmt.Errorf("secret %q has no source", name)
		}
	}
	return &Store{sources: maps.Clone(sources)}, nil
}

// Schemes returns nil: using a secret changes nothing.
func (s *Store) Schemes() []revert.Scheme { return nil }

// Names returns the names of the secrets, sorted.
func (s *Store) Names() []string { return slices.Sorted(maps.Keys(s.sources)) }

// secretValues returns the values that the runtime removes from records and
// output. A driver that embeds a Store has this method too.
func (s *Store) secretValues() *callstate.SecretValues { return &s.hidden }

// read returns a value without authorization.
func (s *Store) read(ctx context.Context, name string) (value string, err error) {
	source, ok := s.sources[name]
	if !ok {
		have := "there are none"
		if names := s.Names(); len(names) > 0 {
			have = "there is " + strings.Join(names, ", ")
		}
		return "", fmt.Errorf("%w: no secret %q; %s", ctxperm.ErrInvalid, name, have)
	}
	value, err = source(ctx)
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", name, err)
	}
	value = strings.TrimRight(value, "\r\n") // added by an editor or echo
	if n := len(value); n < MinValue || n > MaxValue {
		return "", fmt.Errorf("secret %s has %d bytes; valid are %d to %d: a shorter one could not be kept out of outputs", name, n, MinValue, MaxValue)
	}
	s.hidden.Add(value)
	return value, nil
}
