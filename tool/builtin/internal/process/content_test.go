package process_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestEnsureSeesWhatAProgramWrote: a postcondition about the content of files holds for a
// program as for any tool.
func TestEnsureSeesWhatAProgramWrote(t *testing.T) {
	engine, err := rego.New(rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
allow contains "all" if true
ensure contains "a config file keeps its line" if {
	some change in input.changes
	change.resource.ext == ".ini"
	change.after
	not contains(change.text, "Maintained by:")
}`}})
	require.NoError(t, err)
	w := newProgramSetup(t, agent.Policy(engine))
	const good = "Maintained by: us\nx = 1\n"
	site := filepath.Join(w.dir, "site.ini")
	require.NoError(t, os.WriteFile(site, []byte(good), 0o644))
	for script, ok := range map[string]bool{
		"sed -i /Maintained/d site.ini":                          false,
		"echo x > new && mv new site.ini":                        false,
		"rm site.ini && mkdir d && echo x > d/other.ini":         false,
		"printf 'Maintained by:\\0' > site.ini":                  false,
		"ln -sf /etc/hostname site.ini":                          false,
		"sed -i s/1/2/ site.ini && sed -i s/2/1/ site.ini":       true,
		"echo x > notes.txt && cp site.ini copy.ini && rm *.ini": true,
	} {
		t.Run(script, func(t *testing.T) {
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": script})
			if ok {
				require.NoError(t, err, o.Text)
			} else {
				require.ErrorIs(t, err, tool.ErrVerifyFailed, o.Text)
				require.Contains(t, o.Error.Why, "a config file keeps its line (p.rego:3)")
				require.Equal(t, "all", o.Reverted)
			}
			_, err = tx.Revert(t.Context(), revert.Options{})
			require.NoError(t, err)
			text, err := os.ReadFile(site)
			require.NoError(t, err)
			require.Equal(t, good, string(text))
		})
	}
}
