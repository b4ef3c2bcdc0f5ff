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

// How long a value may be. A shorter one stands in any text by chance, so that it
// could not be told from one that has to go.
const (
	MinValue = 8
	MaxValue = 64 << 10
)

// ErrNotFound says that a source does not hold the secret.
var ErrNotFound = errors.New("the secret is not there")

// Source reads one secret. It is asked each time the secret is opened, may be asked
// at once by several calls, and never puts the value into an error.
type Source func(ctx context.Context) (string, error)

// Env is a variable of the environment, read by lookup: os.LookupEnv in a program. It
// is granted by naming it here and nowhere else.
func Env(variable string, lookup func(string) (string, bool)) Source {
	return func(context.Context) (string, error) {
		value, ok := lookup(variable)
		if !ok {
			return "", fmt.Errorf("variable %s: %w", variable, ErrNotFound)
		}
		return value, nil
	}
}

// Store says where secrets are kept, and remembers which values were opened, to take
// them out of what is written down and shown. It is a ctxperm.Driver and safe for
// concurrent use.
type Store struct {
	sources map[string]Source
	hidden  callstate.SecretValues
}

// New makes a store of sources by name: letters, digits and _.-, as in secret://name.
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

// Schemes returns none: using a secret changes nothing.
func (s *Store) Schemes() []revert.Scheme { return nil }

// Names lists the secrets, in order.
func (s *Store) Names() []string { return slices.Sorted(maps.Keys(s.sources)) }

// SecretValues is what the runtime takes out of what it writes, for packages of this
// module.
func (s *Store) SecretValues(k callstate.ModuleKey) *callstate.SecretValues {
	if !k.Valid() {
		return nil
	}
	return &s.hidden
}

// Read returns a value without asking anybody, for packages of this module that take
// back under a right that was given before.
func (s *Store) Read(ctx context.Context, k callstate.ModuleKey, name string) (string, error) {
	if !k.Valid() {
		return "", errKey
	}
	return s.read(ctx, name)
}

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
	value = strings.TrimRight(value, "\r\n") // of a file, or of echo
	if n := len(value); n < MinValue || n > MaxValue {
		return "", fmt.Errorf("secret %s has %d bytes; valid are %d to %d: a shorter one could not be kept out of outputs", name, n, MinValue, MaxValue)
	}
	s.hidden.Add(value)
	return value, nil
}
