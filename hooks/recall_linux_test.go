package hooks_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/revert"
)

// A prompt goes on after the death of the resident process. Gemini CLI gives it
// no ID, and reports its start only once.
func TestPromptGoesOnAfterARestart(t *testing.T) {
	starts := map[string]string{"gemini-cli": "BeforeAgent", "codex": "UserPromptSubmit"}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, false, allowAll)
			c := d.coder(name, "s")
			edits := func(file string) {
				use := map[string]any{"tool_name": "write_file", "tool_use_id": file, "tool_input": map[string]any{"file_path": file, "content": "x"}}
				before, after := "PreToolUse", "PostToolUse"
				if name == "gemini-cli" {
					before, after = "BeforeTool", "AfterTool"
					delete(use, "tool_use_id")
				}
				if name == "codex" {
					use["tool_name"] = "apply_patch"
				}
				_, a := c.event(before, c.withoutID(use))
				require.NotEqual(t, hooks.Deny, a.Verdict, a.Reason)
				d.write(file, "x")
				c.event(after, c.withoutID(use))
			}
			c.prompt = 1
			c.event(start, c.withoutID(map[string]any{"prompt": "make files"}))
			edits("a")
			d.dies()
			d.open()
			edits("b")
			all := d.txns()
			require.Len(t, all, 2)
			first, err := revert.PromptOf(t.Context(), d.rt.Journal(), all[0])
			require.NoError(t, err)
			second, err := revert.PromptOf(t.Context(), d.rt.Journal(), all[1])
			require.NoError(t, err)
			require.Equal(t, "make files", second.Text)
			require.Equal(t, first.ID, second.ID)

			c.prompt = 2
			c.event(start, c.withoutID(map[string]any{"prompt": "and more"}))
			edits("c")
			third, err := revert.PromptOf(t.Context(), d.rt.Journal(), d.last())
			require.NoError(t, err)
			require.Equal(t, "and more", third.Text)
			require.NotEqual(t, first.ID, third.ID)
		})
	}
}

// withoutID takes the ID of the prompt out of an event of a client that gives
// none.
func (c *coder) withoutID(members map[string]any) map[string]any {
	if c.client.Name == "gemini-cli" {
		members["prompt_id"] = ""
	}
	return members
}
