package hooks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/proof/treecheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// same asserts that the project is as it was, except for the time of its own folder, which no revert restores.
func (d *project) same(was treecheck.Tree) {
	d.t.Helper()
	for _, diff := range treecheck.Compare(was, d.tree()) {
		if !strings.HasPrefix(diff.String(), `".": directory mtime`) {
			require.Fail(d.t, diff.String())
		}
	}
}

// TestPromptInTheSandbox: commands run in the sandbox, an edit in between is saved first, and the revert of the prompt is exact.
func TestPromptInTheSandbox(t *testing.T) {
	d := newProject(t, true, "")
	d.write("a.txt", "one\n")
	d.write("sub/b.txt", "two\n")
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("clean up")
	ran := c.runs("echo hi; cat a.txt; rm -rf sub a.txt; echo new > c.txt; exit 3")
	require.Equal(t, hooks.Allow, ran.before.Verdict)
	require.Equal(t, "hi\none\n", ran.out)
	require.Equal(t, 3, ran.code)
	require.Equal(t, hooks.Answer{}, ran.after)
	require.NoFileExists(t, filepath.Join(d.dir, "a.txt"), "applied when the command returns")
	require.Equal(t, hooks.Answer{}, c.edits("Write", "c.txt", "edited\n").after)
	require.Zero(t, c.runs("test -e c.txt && ! test -e a.txt").code)
	c.stops()
	rep := d.undo(d.last())
	require.True(t, rep.Complete(), "%+v", rep)
	d.same(was)
}

// TestPromptObserved: without a sandbox the client runs the command, and what it changed is found.
func TestPromptObserved(t *testing.T) {
	d := newProject(t, false, "")
	d.write("a.txt", "one\n")
	d.write("sub/b.txt", "two\n")
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("clean up")
	ran := c.runs("rm -rf sub a.txt; echo new > c.txt")
	require.Equal(t, hooks.Ask, ran.before.Verdict, "the pack asks about a command outside the sandbox")
	require.Contains(t, ran.before.Reason, "outside the sandbox")
	require.Nil(t, ran.before.Input)
	require.Equal(t, hooks.Answer{}, ran.after)
	c.stops()
	rep := d.undo(d.last())
	require.False(t, rep.Complete(), "what it did elsewhere is unknown")
	d.same(was)
}

// TestDenied: a denied use does not run, changes nothing, and says why.
func TestDenied(t *testing.T) {
	d := newProject(t, true, "package remit\n\ndeny contains \"not here\" if input.call.args.command == \"make\"\n")
	d.write(".env", "SECRET=1\n")
	c := d.coder("claude-code", "s1")
	c.says("go")
	ran := c.runs("make")
	require.Equal(t, hooks.Deny, ran.before.Verdict)
	require.Contains(t, ran.before.Reason, "not here")
	for _, name := range []string{".env", ".git/hooks/pre-commit"} {
		one := c.edits("Write", name, "x")
		require.Equal(t, hooks.Deny, one.before.Verdict, name)
	}
	_, read := c.asks("Read", map[string]any{"file_path": filepath.Join(d.dir, ".env")})
	require.Equal(t, hooks.Deny, read.Verdict)
	_, far := c.asks("Write", map[string]any{"file_path": filepath.Join(d.state, "x"), "content": "x"})
	require.Equal(t, hooks.Ask, far.Verdict)
	require.Contains(t, far.Reason, "outside the workspace")
	c.stops()
}

// TestDeclined: a write outside the workspace that the person declines has no effect, and a later undo has nothing to say about it. One
// that happens counts, also if the client does not report it.
func TestDeclined(t *testing.T) {
	d := newProject(t, true, "")
	c := d.coder("claude-code", "s1")
	elsewhere := filepath.Join(t.TempDir(), "x")
	c.says("decline")
	was := d.tree()
	c.edits("Write", "a.txt", "x")
	c.asks("Write", map[string]any{"file_path": elsewhere, "content": "x"})
	c.stops()
	for _, txn := range d.txns() { // the asked call has its own
		require.True(t, d.undo(txn).Complete())
	}
	d.same(was)
	c.says("accept")
	c.asks("Write", map[string]any{"file_path": elsewhere, "content": "x"})
	require.NoError(t, os.WriteFile(elsewhere, []byte("x"), 0o600))
	c.stops()
	require.False(t, d.undo(d.last()).Complete())
}

// TestLinksOut: a path that leads out of the workspace by a link is a file outside it, also if the file does not exist yet.
func TestLinksOut(t *testing.T) {
	d := newProject(t, true, "")
	require.NoError(t, os.Symlink(filepath.Dir(d.dir), filepath.Join(d.dir, "up")))
	require.NoError(t, os.Symlink(filepath.Join(filepath.Dir(d.dir), "missing"), filepath.Join(d.dir, "dangling")))
	c := d.coder("claude-code", "s1")
	c.says("go")
	for _, name := range []string{"up/x", "dangling", "../x", "up/project/../x"} {
		_, a := c.asks("Write", map[string]any{"file_path": d.dir + "/" + name, "content": "x"})
		require.Equal(t, hooks.Ask, a.Verdict, name)
		require.Contains(t, a.Reason, "outside the workspace", name)
	}
	one := c.edits("Write", "up/project/in.txt", "x")
	require.Equal(t, hooks.Allow, one.before.Verdict, "it leads back in")
	c.stops()
}

// TestNewFolders: a revert also removes the folders that a client made for a file.
func TestNewFolders(t *testing.T) {
	d := newProject(t, true, "")
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("go")
	require.Equal(t, hooks.Answer{}, c.edits("Write", "new/deep/c.txt", "x").after)
	require.Equal(t, hooks.Answer{}, c.edits("Write", "new/deep/c.txt", "y").after)
	require.Zero(t, c.runs("mkdir new/more && echo z > new/more/d.txt").code)
	c.stops()
	require.True(t, d.undo(d.last()).Complete())
	d.same(was)
}

// TestOtherFolder: a command that starts outside the workspace does not run in the sandbox.
func TestOtherFolder(t *testing.T) {
	d := newProject(t, true, allowAll)
	c := d.coder("claude-code", "s1")
	c.says("go")
	_, a := c.event("PreToolUse", map[string]any{"tool_name": "Bash", "tool_use_id": "u1", "cwd": filepath.Dir(d.dir), "tool_input": map[string]any{"command": "make"}})
	require.Equal(t, hooks.Allow, a.Verdict)
	require.Nil(t, a.Input)
	c.stops()
}

// TestChangesDenied: the policy decides what a command changed before it is applied, and the client learns the reason.
func TestChangesDenied(t *testing.T) {
	d := newProject(t, true, "package remit\n\ndeny contains \"frozen\" if {\n\tinput.purpose == \"apply\"\n\tinput.access.resource.path == \"frozen.txt\"\n}\n")
	d.write("frozen.txt", "one\n")
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("go")
	ran := c.runs("echo two > frozen.txt; echo x > other.txt")
	require.Equal(t, hooks.Allow, ran.before.Verdict)
	require.Equal(t, 126, ran.code)
	require.Contains(t, ran.out, "frozen")
	d.same(was)
	c.stops()
}

// TestUnreported: a use whose end the client does not report ends with the next one, with the prompt, or with the session.
func TestUnreported(t *testing.T) {
	d := newProject(t, false, allowAll)
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("go")
	for _, end := range []func(){
		func() { c.asks("Read", map[string]any{"file_path": filepath.Join(d.dir, "x")}) },
		c.stops,
		func() { require.NoError(t, d.srv.End(t.Context(), "claude-code", "s1")) },
	} {
		_, a := c.asks("Bash", map[string]any{"command": "make"})
		require.Equal(t, hooks.Allow, a.Verdict)
		d.write("made.txt", "x")
		end()
		c.stops()
		txn, err := d.rt.Load(t.Context(), d.last())
		require.NoError(t, err)
		require.Equal(t, revert.PhaseDone, txn.Calls[0].Phase)
		require.Len(t, txn.Calls[0].Changes, 1)
		require.Contains(t, string(txn.Calls[0].Done.Output), `"reported":false`)
		d.undo(txn.ID)
		d.same(was)
	}
}

// TestAskedElsewhere: a client without a prompt of its own is denied what the policy asks about. Once a person approved the call, its
// repetition runs, once.
func TestAskedElsewhere(t *testing.T) {
	d := newProject(t, false, "")
	c := d.coder("codex", "s1")
	c.says("go")
	ran := c.runs("echo x > made.txt")
	require.Equal(t, hooks.Deny, ran.before.Verdict)
	require.NoFileExists(t, filepath.Join(d.dir, "made.txt"))
	require.Equal(t, hooks.Deny, c.runs("echo x > made.txt").before.Verdict, "it still waits")
	txn, err := d.rt.Load(t.Context(), d.last())
	require.NoError(t, err)
	require.Len(t, txn.Calls, 1)
	require.Contains(t, ran.before.Reason, "because the command runs outside the sandbox")
	require.Contains(t, ran.before.Reason, "call "+txn.Calls[0].Ref.Call+" waits")
	require.NotContains(t, ran.before.Reason, "remit approve", "a model reads it")
	require.Contains(t, ran.before.Reason, "repeat it")
	require.NotContains(t, ran.before.Reason, "not repeat")
	require.NoError(t, d.rt.Answer(t.Context(), approve(txn.Calls[0].Ref.Call)))
	c.stops()
	c.says("go on")
	require.NotEqual(t, hooks.Deny, c.runs("echo x > made.txt").before.Verdict)
	require.FileExists(t, filepath.Join(d.dir, "made.txt"))
	c.stops()
	rep := d.undo(txn.ID)
	require.NoFileExists(t, filepath.Join(d.dir, "made.txt"))
	require.False(t, rep.Complete())
	require.Equal(t, hooks.Deny, c.runs("echo x > made.txt").before.Verdict, "an approval is used once")
	c.stops()
}

// TestOtherCallers: the tools run only for a client of the server.
func TestOtherCallers(t *testing.T) {
	d := newProject(t, true, "")
	s, err := d.rt.Session(t.Context(), principal("mallory"))
	require.NoError(t, err)
	for _, name := range []string{"client_read", "client_write", "client_shell"} {
		out, err := s.Call(t.Context(), name, tool.Args{"client": "x", "tool": "y", "command": "true", "paths": []string{"a"}})
		require.Error(t, err)
		require.Equal(t, tool.StatusFailed, out.Status, name)
	}
}

// TestTokens: a token runs its command once, and no other.
func TestTokens(t *testing.T) {
	d := newProject(t, true, "")
	c := d.coder("claude-code", "s1")
	c.says("go")
	in := map[string]any{"command": "echo once >> log"}
	id, a := c.asks("Bash", in)
	_, code := c.shows(a.Input)
	require.Zero(t, code)
	require.Error(t, d.srv.Attach(token(t, a.Input), &hooks.Command{}))
	require.Error(t, d.srv.Attach("0123456789abcdef", &hooks.Command{}))
	c.reports("Bash", id, in, nil)
	_, declined := c.asks("Bash", in)
	c.stops()
	require.Error(t, d.srv.Attach(token(t, declined.Input), &hooks.Command{}), "the client went on without it")
	content, err := os.ReadFile(filepath.Join(d.dir, "log"))
	require.NoError(t, err)
	require.Equal(t, "once\n", string(content))
}

// TestEditsOfOthers: a person changes other lines of a file that the client edited, in place or by a new file, and another name of a file.
// A revert keeps the lines, and links the names again.
func TestEditsOfOthers(t *testing.T) {
	d := newProject(t, true, "")
	d.write("a.txt", "one\ntwo\nthree\nfour\nfive\n")
	d.write("b.txt", "x\n")
	require.NoError(t, os.Link(filepath.Join(d.dir, "b.txt"), filepath.Join(d.dir, "twin.txt")))
	c := d.coder("claude-code", "s1")
	c.says("edit")
	c.replaces("a.txt", "one\ntwo\nthree\nfour\nFIVE\n")
	was := d.tree()
	c.replaces("b.txt", "y\n")
	c.stops()
	d.write("a.txt", "ONE\ntwo\nthree\nfour\nFIVE\n")
	rep := d.undo(d.last())
	require.Equal(t, !portable, rep.Complete(), "%+v", rep)
	content, err := os.ReadFile(filepath.Join(d.dir, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, "ONE\ntwo\nthree\nfour\nfive\n", string(content))
	d.write("a.txt", "one\ntwo\nthree\nfour\nFIVE\n")
	var links []string
	for _, diff := range treecheck.Compare(was, d.tree()) {
		if strings.Contains(diff.String(), "link") {
			links = append(links, diff.String())
		}
	}
	require.Equal(t, portable, len(links) > 0)
}

// replaces edits a file as clients do that write a new one and rename it.
func (c *coder) replaces(name, content string) {
	c.t.Helper()
	in := map[string]any{"file_path": filepath.Join(c.dir, name), "old_string": "x", "new_string": "y"}
	id, a := c.asks("Edit", in)
	require.Equal(c.t, hooks.Allow, a.Verdict)
	c.write(name+".new", content)
	require.NoError(c.t, os.Rename(filepath.Join(c.dir, name+".new"), filepath.Join(c.dir, name)))
	require.Equal(c.t, hooks.Answer{}, c.reports("Edit", id, in, nil))
}

// TestReplacedFolder: a session whose folder is another one by now continues in that one, and not in the one that it opened.
func TestReplacedFolder(t *testing.T) {
	d := newProject(t, true, "")
	c := d.coder("claude-code", "s1")
	c.says("go")
	require.Equal(t, hooks.Answer{}, c.edits("Write", "a.txt", "x").after)
	require.Equal(t, 1, d.opens)
	d.gone = true
	require.Equal(t, hooks.Answer{}, c.edits("Write", "b.txt", "x").after)
	require.Equal(t, 2, d.opens)
	c.stops()
	require.Len(t, d.txns(), 2, "the prompt in the first folder has ended")
}
