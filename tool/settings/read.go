package settings

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// Of returns the settings that the running call's tool is configured with, as a Go type
// that has a field for each; a secret is a [Secret]. Outside of a call it fails with
// ctxperm.ErrClosed.
func Of[T any](ctx context.Context, tc ctxperm.ToolContext) (T, error) {
	var out T
	op, err := contexts.Call(tc).Enter(ctx)
	if err != nil {
		return out, err
	}
	defer op.Leave()
	call := op.Call()
	if call == nil {
		return out, ctxperm.ErrClosed
	}
	text := call.Config().Settings
	if text == nil {
		return out, errors.New("the tool has no settings: declare them in its Spec")
	}
	if err := canon.Decode(text, &out); err != nil {
		var zero T
		return zero, fmt.Errorf("settings: %w", err)
	}
	return out, nil
}

// Secret is a reference to a secret, as a setting holds it. The zero Secret
// refers to no secret. An unset setting has this value.
type Secret struct{ name string }

// Name is the name of the secret.
func (s Secret) Name() string { return s.name }

// String is the reference.
func (s Secret) String() string {
	if s.name == "" {
		return ""
	}
	return "secret://" + s.name
}

// MarshalText writes the reference.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a reference, and refuses anything else without repeating it.
func (s *Secret) UnmarshalText(text []byte) error {
	r, err := perm.ParseResource(string(text))
	if err != nil || r.Kind() != perm.KindSecret {
		return errors.New("not a reference such as secret://name")
	}
	s.name = r.Facts().Name
	return nil
}

// Open opens the secret for the running call, which has to be allowed to use it.
func (s Secret) Open(ctx context.Context, tc ctxperm.ToolContext) (secrets.Secret, error) {
	if s.name == "" {
		return secrets.Secret{}, fmt.Errorf("the setting refers to no secret: %w", ctxperm.ErrInvalid)
	}
	return secrets.Open(ctx, tc, s.name)
}
