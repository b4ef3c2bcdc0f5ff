package main

import (
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// TestWrongLocation: what a location names wrongly is a wrong input, told in
// clean text. A name that no record can hold is refused with its flag.
func TestWrongLocation(t *testing.T) {
	journal, _ := pgtest.Database(t)
	u, err := url.Parse(journal)
	require.NoError(t, err)
	u.Path = "/nodatabase"
	p := targetPlace{}
	home := t.TempDir()
	code, out, errs := p.runAs(func(w *cli.Env) {
		w.Getenv = func(name string) string { return map[string]string{"HOME": home}[name] }
	}, "log", "--journal", u.String(), "--workspace", t.TempDir())
	require.Equal(t, int(cli.ExitUsage), code, out+errs)
	require.Contains(t, errs, `database "nodatabase" does not exist`)
	require.NotContains(t, errs, `\t`)
	for _, flag := range []string{"--workspace", "--state"} {
		code, out, errs = p.run(personHere, "log", flag, filepath.Join(t.TempDir(), "\xff"))
		require.Equal(t, int(cli.ExitUsage), code, out+errs)
		require.Contains(t, errs, flag)
		require.Contains(t, errs, "not valid UTF-8")
	}
}
