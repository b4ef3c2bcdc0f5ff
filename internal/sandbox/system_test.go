package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSystemHoldsNoSecrets checks that no shown path can hold keys, passwords
// or tokens, or contains such a path, and that none identifies this machine.
func TestSystemHoldsNoSecrets(t *testing.T) {
	for _, path := range System() {
		require.True(t, clean(path), path)
		for _, secret := range []string{
			"/etc/shadow", "/etc/gshadow", "/etc/ssl/private", "/etc/ssh/ssh_host_rsa_key", "/etc/sudoers", "/etc/npmrc", "/etc/pip.conf",
			"/etc/wgetrc", "/etc/fstab", "/etc/environment", "/etc/profile.d", "/etc/machine-id", "/etc/hostname", "/etc/resolv.conf",
			"/etc/maven/settings.xml", "/etc/postgresql-common/pg_service.conf", "/etc/R/Renviron.site", "/etc/chromium/policies",
			"/etc/java-17-openjdk/management/jmxremote.password", "/etc/php/8.2/fpm", "/root", "/home", "/var", "/opt", "/run",
		} {
			require.False(t, within(secret, path), "%s shows %s", path, secret)
		}
	}
	// The root user's programs could read what only the root user may read.
	for _, path := range System() {
		is, err := os.Stat(path)
		if err != nil || !strings.HasPrefix(path, "/etc/") {
			continue
		}
		require.NotZero(t, is.Mode().Perm()&0o004, "%s is not for everybody", path)
	}
}
