package hooks_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/revert"
)

// A command that the agent ran itself cannot wait for an approval of what it
// changed: the agent waits for the answer to its event. remit reverts the change.
func TestObservedChangeThatAPersonMustApprove(t *testing.T) {
	const command = "make x; echo {} > .mcp.json; echo a > a.txt"
	for _, name := range []string{"claude-code", "codex"} {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, false, "")
			d.write("Makefile", "x:\n")
			was := d.tree()
			c := d.coder(name, "s")
			c.says("work")
			one := c.runs(command)
			if one.before.Verdict == hooks.Deny { // this client cannot ask
				require.NoError(t, d.rt.Answer(t.Context(), answered(t, d, d.lastCall())))
				one = c.runs(command)
			}
			require.NotEqual(t, hooks.Deny, one.before.Verdict)
			require.Contains(t, one.after.Failed, "remit reverts what the call changed")
			require.Contains(t, one.after.Failed, ".mcp.json")
			require.NotContains(t, one.after.Failed, "remit approve")
			require.NoFileExists(t, filepath.Join(d.dir, ".mcp.json"))
			d.same(was)
			require.Equal(t, revert.PhaseUnknown, d.phase(d.lastCall()), "what it did elsewhere")
			c.stops()
		})
	}
}
