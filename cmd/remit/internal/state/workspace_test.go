package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

func TestStateOfAWorkspace(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "a", "site"), filepath.Join(dir, "b", "site")
	require.NoError(t, errors.Join(os.MkdirAll(one, 0o755), os.MkdirAll(two, 0o755)))
	home := filepath.Join(dir, "home")
	env := func(name string) string {
		return map[string]string{"HOME": home, "USERPROFILE": home, "XDG_STATE_HOME": "relative"}[name]
	}
	at := func(folder string) string {
		p := Workspace{Dir: folder}
		require.NoError(t, p.Find(cli.NewApp(cli.Env{Getenv: env})))
		return p.StateDir
	}
	require.Equal(t, filepath.Join(home, ".local", "state", "remit"), filepath.Dir(at(one)))
	require.True(t, strings.HasPrefix(filepath.Base(at(one)), "site-"), at(one))
	require.NotEqual(t, at(one), at(two), "folders of one name")
	require.NoError(t, os.Symlink(one, filepath.Join(dir, "link")))
	require.Equal(t, at(one), at(filepath.Join(dir, "link")), "one folder by two names")
}
