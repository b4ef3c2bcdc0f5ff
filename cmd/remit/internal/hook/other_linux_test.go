package hook

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOtherSystems builds the command with the code of systems without a
// sandbox, without a watch of folders, and without the parents of processes. An
// agent works with it, its commands are observed, and a person can revert them.
func TestOtherSystems(t *testing.T) {
	bin := build(t, "portable", time.Hour, "portable", "")
	t.Run("observed", func(t *testing.T) {
		p := newPlace(t)
		p.write("f", "before")
		p.write("gone", "content")
		require.Zero(t, p.event(bin, "s", "UserPromptSubmit", map[string]any{"prompt_id": "p1", "prompt": "do it"}).code)
		p.before(bin, "s", "p1", "u1")
		p.write("f", "after!")
		p.write("new", "x")
		require.NoError(t, os.Remove(filepath.Join(p.project, "gone")))
		p.after(bin, "s", "p1", "u1")
		p.before(bin, "s", "p1", "u2") // another call uses the copies of the first
		p.write("new", "y")
		p.after(bin, "s", "p1", "u2")
		require.Zero(t, p.event(bin, "s", "Stop", map[string]any{"prompt_id": "p1"}).code)

		denied := p.remit(bin, "", "undo", "p1")
		require.NotZero(t, denied.code, "an agent can be behind it, and no person types")
		require.Equal(t, "after!", p.read("f"))
		require.Zero(t, p.event(bin, "s", "SessionEnd", nil).code)
		undo := p.remit(bin, "", "undo", "p1")
		require.Equal(t, "before", p.read("f"), "%+v", undo)
		require.Equal(t, "content", p.read("gone"))
		require.Empty(t, p.read("new"))
	})
	t.Run("pack", func(t *testing.T) {
		p := newPlace(t)
		require.NoError(t, os.RemoveAll(p.at("home/.config/remit/coding-agent")))
		a := p.event(bin, "s", "PreToolUse", use("p1", "u1"))
		require.Zero(t, a.code, "%+v", a)
		require.Contains(t, a.out, `"ask"`, "%+v\n%s", a, p.log())
		require.Contains(t, a.out, "outside the sandbox")
	})
	t.Run("killed", func(t *testing.T) {
		p := newPlace(t)
		p.write("f", "before")
		p.before(bin, "s", "p1", "u1")
		p.write("f", "after!")
		p.kill()
		a := p.event(bin, "s", "PostToolUse", use("p1", "u1"))
		require.Zero(t, a.code, "%+v\n%s", a, p.log())
		require.Zero(t, p.event(bin, "s", "SessionEnd", nil).code)
		undo := p.remit(bin, "", "undo", "p1")
		require.Equal(t, "before", p.read("f"), "%+v\n%s", undo, p.log())
	})
}
