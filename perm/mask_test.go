package perm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

func TestMask(t *testing.T) {
	for _, text := range []string{
		"file://*/**/.env/**", "file://*/**/*.pem/** except file://*/**/*cert.pem/**",
		"file://*/**/*.pem/** except file://*/**/*cert.pem/** file://*/**/testdata/**",
	} {
		m, err := perm.ParseMask(text)
		require.NoError(t, err)
		require.Equal(t, text, m.String())
		require.Equal(t, perm.KindFile, m.Kind())
	}
	for _, text := range []string{"", "a b", "file://*/a except", "file://*/a except ", "file://*/a except b", "file://*/a except file://*/b  file://*/c"} {
		_, err := perm.ParseMask(text)
		require.Error(t, err, text)
	}
	m, err := perm.ParseMask("file://*/**/*.pem/** except file://*/**/*cert.pem/** file://*/**/testdata/**")
	require.NoError(t, err)
	for path, want := range map[string]bool{
		"a.pem": true, "d/a.pem/x": true, "cacert.pem": false, "testdata/a.pem": false, "x/testdata/y/a.pem": false, "a.txt": false,
	} {
		r, err := perm.FileResource("workspace", path)
		require.NoError(t, err)
		require.Equal(t, want, m.Matches(r), path)
		require.False(t, perm.Mask{}.Matches(r))
		other, err := perm.FileResource("workspace", "other.pem")
		require.NoError(t, err)
		require.Equal(t, !strings.HasSuffix(path, "cert.pem") && !strings.Contains(path, "testdata"), m.Matches(other, r), "an exception for one spelling holds for all")
	}
	p, err := perm.ParsePattern("file://workspace/**")
	require.NoError(t, err)
	require.True(t, m.Overlaps(p))
	require.Empty(t, perm.Mask{}.String())
}
