package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestUntrustedContentAsks: the default policy lets a pure call go where the model says
// until content was read that others wrote; beside it, the pack untrusted asks about
// each effect from there on.
func TestUntrustedContentAsks(t *testing.T) {
	for name, tt := range map[string]struct {
		sources []rego.Source
		writes  bool
	}{
		"workspace": {[]rego.Source{{FS: policies.Workspace(), Prefix: policies.Prefix}}, true},
		"untrusted": {[]rego.Source{{FS: policies.Workspace(), Prefix: policies.Prefix}, {FS: policies.Untrusted(), Prefix: policies.Prefix}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := mustLoad(t, rego.Options{Timeout: time.Minute, Sources: tt.sources})
			rt := newRuntime(t, agent.Tools(messenger(t)...), agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()), agent.Policy(e))
			tx := begin(t, newSession(t, rt))
			call := func(name string, in any) error {
				_, err := tx.Invoke(t.Context(), name, in)
				return err
			}
			require.NoError(t, call("send", "before"))
			require.NoError(t, call("file_write", tool.Args{"path": "a.txt", "content": "before"}))
			require.NoError(t, call("fetch", ""))
			require.ErrorIs(t, call("send", "after"), tool.ErrDenied)
			require.NoError(t, call("file_read", tool.Args{"path": "a.txt"}))
			err := call("file_write", tool.Args{"path": "a.txt", "content": "after"})
			if tt.writes {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tool.ErrDenied)
			require.ErrorContains(t, err, "each effect needs approval from here on (builtin:untrusted/untrusted.rego:")
		})
	}
}
