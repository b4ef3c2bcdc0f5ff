package secrets

import (
	"context"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/handleaccess"
)

// init lets this module reach what tool authors do not see: see package
// internal/handleaccess.
func init() {
	handleaccess.Install(handleaccess.Secrets[Secret, Store]{
		Reveal: Secret.reveal,
		Read:   func(ctx context.Context, s *Store, name string) (string, error) { return s.read(ctx, name) },
		Values: (*Store).secretValues,
	})
	callstate.InstallSecretSource(func(driver any) *callstate.SecretValues {
		if s, ok := driver.(interface {
			secretValues() *callstate.SecretValues
		}); ok {
			return s.secretValues()
		}
		return nil
	})
}
