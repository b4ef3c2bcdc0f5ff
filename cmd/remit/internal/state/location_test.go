package state

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A location with a password is refused in every form that the driver would
// accept: messages and hints repeat the location.
func TestLocationHoldsNoPassword(t *testing.T) {
	for _, location := range []string{
		"postgres://remit:secret@h/x", "postgres://remit:@h/x", "postgresql://remit:secret@h/x", "postgres://remit@h/x?password=secret",
		"postgres://remit@h/x?PassWord=secret", "postgres://remit@h/x?sslpassword=secret", "postgres://remit@h/x?a=b;password=secret",
		"postgresql:password=secret host=127.0.0.1 user=remit", "postgres:/remit:secret@h/x", "postgres:///remit:secret@h/x",
		"postgres://remit%3Asecret@h/x", "postgres://h/remit:secret@h", "postgres://h/x#password=secret", "postgres:remit:secret@h/x",
		"host=h user=remit password=secret", "POSTGRES://remit@h/x?pass%77ord=secret", "postgres://", "postgres:", "mysql://remit@h/x", "remit@h", "postgres://h/a/b",
	} {
		require.NotEmpty(t, checkLocation(location), location)
	}
	for _, location := range []string{
		"postgres://remit@h/x", "postgresql://remit@h:5432/x?sslmode=verify-full", "postgres://remit@/x?host=%2Fvar%2Frun%2Fpostgresql&port=5433", "postgres://h/x", "postgres://h",
		"postgres://remit@[::1]:5432/x", "postgres://remit@a,b:5433/x?target_session_attrs=read-write",
	} {
		require.Empty(t, checkLocation(location), location)
	}
}
