package hooks_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/revert"
)

// Only a person approves what a command changed: the client was asked before
// the command ran, when nobody knew of the change.
func TestNoClientApprovesTheChangesOfACommand(t *testing.T) {
	for _, name := range []string{"claude-code", "codex"} {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, true, "")
			c := d.coder(name, "s")
			made := filepath.Join(d.dir, ".mcp.json")
			waits := func() string {
				one := c.runs("echo {} > .mcp.json")
				require.Equal(t, hooks.Allow, one.before.Verdict)
				require.Equal(t, 126, one.code, one.out)
				require.NoFileExists(t, made)
				call := regexp.MustCompile(`c_[a-z0-9]+`).FindString(one.out)
				require.NotEmpty(t, call, one.out)
				return call
			}
			passes := func() {
				one := c.runs("echo {} > .mcp.json")
				require.Zero(t, one.code, one.out+one.before.Reason)
				require.FileExists(t, made)
				require.NoError(t, os.Remove(made))
			}
			c.says("approved while the prompt is open")
			call := waits()
			require.Equal(t, hooks.Deny, c.runs("echo {} > .mcp.json").before.Verdict)
			require.NoError(t, d.rt.Answer(t.Context(), answered(t, d, call)))
			passes()
			waits() // one approval is for one call
			c.stops()
			require.NoFileExists(t, made)

			c.says("approved between two prompts")
			call = waits()
			c.stops()
			require.NoFileExists(t, made)
			require.NoError(t, d.rt.Answer(t.Context(), answered(t, d, call)))
			c.says("repeated")
			passes()
			c.stops()
		})
	}
}

// A client makes the missing folders above a file that it writes.
func TestUndoDeletesTheFoldersOfNewFiles(t *testing.T) {
	d := newProject(t, true, "")
	was := d.tree()
	c := d.coder("claude-code", "s")
	c.says("write")
	c.edits("Write", "x/y/1.txt", "1\n")
	c.edits("Write", "x/y/2.txt", "2\n")
	c.edits("Write", "new/deep/3.txt", "3\n")
	c.stops()
	require.True(t, d.undo(d.last()).Complete())
	d.same(was)
}

// answered approves what a command wants to change, as a person who looked.
func answered(t *testing.T, d *project, call string) agent.Answer {
	t.Helper()
	_, c, err := revert.LoadCall(t.Context(), d.rt.Journal(), call)
	require.NoError(t, err)
	a := approve(call)
	a.RequestDigest = c.Asked.Digest
	return a
}

// A client in a mode without questions lets a use pass about which the hook
// asks. Then only remit approve decides.
func TestAskInAModeWithoutQuestions(t *testing.T) {
	for mode, verdict := range map[string]hooks.Verdict{"default": hooks.Ask, "plan": hooks.Ask, "acceptEdits": hooks.Deny, "bypassPermissions": hooks.Deny} {
		t.Run(mode, func(t *testing.T) {
			d := newProject(t, true, "")
			c := d.coder("claude-code", "s")
			c.says("write")
			_, a := c.event("PreToolUse", map[string]any{
				"tool_name": "Write", "tool_use_id": "u", "permission_mode": mode,
				"tool_input": map[string]any{"file_path": filepath.Join(d.dir, ".mcp.json"), "content": "{}"},
			})
			require.Equal(t, verdict, a.Verdict)
			if verdict == hooks.Deny {
				require.Contains(t, a.Reason, "a person must approve it")
			}
			c.stops()
		})
	}
}

// An approval counts also if the client ended before it: a client can run a
// process for each prompt.
func TestApprovalAfterTheEndOfTheClient(t *testing.T) {
	for name, use := range map[string]func(c *coder) did{
		"asked before": func(c *coder) did { return c.edits("apply_patch", ".mcp.json", "{}") },
		"asked after":  func(c *coder) did { return c.runs("echo {} > .mcp.json") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, true, "")
			c := d.coder("codex", "s")
			made := filepath.Join(d.dir, ".mcp.json")
			ends := func() {
				c.stops()
				require.NoError(t, d.srv.End(t.Context(), "codex", "s"))
			}
			call := ""
			for range 2 { // what asks after it ran waits alone when it is repeated
				c.says("make it")
				one := use(c)
				require.NoFileExists(t, made)
				call = regexp.MustCompile(`c_[a-z0-9]+`).FindString(one.before.Reason + one.out)
				require.NotEmpty(t, call)
				ends()
			}
			require.NoError(t, d.rt.Answer(t.Context(), answered(t, d, call)))
			c.says("go on")
			one := use(c)
			require.FileExists(t, made, "%+v", one)
			require.NoError(t, os.Remove(made))
			require.NotEqual(t, did{}, use(c))
			require.NoFileExists(t, made, "an approval is used once")
			ends()
		})
	}
}
