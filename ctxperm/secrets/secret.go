package secrets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/perm"
)

// Secret is a handle of a secret, for one call. It prints, marshals and logs as
// its name. The zero Secret has no value.
type Secret struct {
	name  string
	value func() (string, error) // reflection finds no value in a function
}

var contexts = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()

// Open authorizes the use of a secret, and returns its handle for the call of
// tc. An unknown name is ErrInvalid. Only a call that may use the name learns
// that it is unknown.
func Open(ctx context.Context, tc ctxperm.ToolContext, name string) (Secret, error) {
	store, err := ctxperm.DriverOf[*Store](ctx, tc)
	if errors.Is(err, ctxperm.ErrNoDriver) {
		return Secret{}, fmt.Errorf("open a secret: %w; make one with secrets.New, and give it to the runtime with agent.Driver", err)
	}
	if err != nil {
		return Secret{}, fmt.Errorf("open a secret: %w", err)
	}
	return store.Open(ctx, tc, name)
}

// Open is the function Open with this store, for handles with their own store.
func (s *Store) Open(ctx context.Context, tc ctxperm.ToolContext, name string) (Secret, error) {
	r, err := perm.KindSecret.Resource(name)
	if err != nil {
		return Secret{}, fmt.Errorf("open a secret: %w: %w", ctxperm.ErrInvalid, err)
	}
	permit, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Use, r.String()))
	if err != nil {
		return Secret{}, err
	}
	defer permit.End()
	value, err := s.read(ctx, name)
	if err != nil {
		return Secret{}, err
	}
	call := contexts.PermitCall(permit)
	return Secret{name: name, value: func() (string, error) {
		op, err := call.Enter(context.WithoutCancel(ctx))
		if err != nil {
			return "", err
		}
		defer op.Leave()
		return value, nil
	}}, nil
}

// reveal returns the value until the call ends.
func (s Secret) reveal() (string, error) {
	if s.value == nil {
		return "", fmt.Errorf("the zero secret: %w", ctxperm.ErrClosed)
	}
	return s.value()
}

// Name returns the name, or "" for the zero Secret.
func (s Secret) Name() string { return s.name }

// String returns the secret's resource, such as secret://github.
func (s Secret) String() string { return "secret://" + s.name }

// GoString returns String.
func (s Secret) GoString() string { return s.String() }

// Format writes String for every verb.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'q' {
		_, _ = fmt.Fprintf(f, "%q", s.String())
		return
	}
	_, _ = fmt.Fprint(f, s.String())
}

// MarshalText writes String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
