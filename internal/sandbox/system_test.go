package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSystemHoldsNoSecrets: no folder or file that can hold keys, passwords or tokens
// is shown, nor one around it, and nothing that tells this machine from others.
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
	// What only the root user may read would be read by the root user's programs.
	for _, path := range System() {
		is, err := os.Stat(path)
		if err != nil || !strings.HasPrefix(path, "/etc/") {
			continue
		}
		require.NotZero(t, is.Mode().Perm()&0o004, "%s is not for everybody", path)
	}
}
