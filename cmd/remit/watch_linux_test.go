package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// watchPlace is a workspace with a screen on which a person watches, and a shell that an agent uses.
type watchPlace struct {
	*targetPlace
	t      *testing.T
	screen *screen
	agent  *personShell
}

// newWatchPlace starts the screen before the agent, as a person has it.
func newWatchPlace(t *testing.T, width, height int, env ...string) watchPlace {
	t.Helper()
	bin, target := commandFolder(t), emptyTarget(t)
	require.NoError(t, os.WriteFile(target.policy, []byte("package remit\nask contains \"look\" if input.access.action == \"delete\"\nallow contains \"all\" if input.access.action in {\"read\", \"list\", \"write\"}\n"), 0o600))
	s := newScreen(t, bin, width, height, env...)
	return watchPlace{target, t, s, newPersonShell(t, bin)}
}

// flags select the journal.
func (p watchPlace) flags() string { return " --workspace " + p.workspace + " --state " + p.state }

// calls lets the agent make calls, and returns what it reads.
func (p watchPlace) calls(calls ...map[string]any) string {
	p.t.Helper()
	var lines strings.Builder
	for _, c := range calls {
		text, err := json.Marshal(c)
		require.NoError(p.t, err)
		lines.Write(append(text, '\n'))
	}
	script := filepath.Join(p.dir, "s.jsonl")
	require.NoError(p.t, os.WriteFile(script, []byte(lines.String()), 0o600))
	_, out := p.agent.types("really run --on-ask wait --principal agent-x --policy " + p.policy + p.flags() + " " + script)
	return out
}

func call(name string, args map[string]any) map[string]any {
	return map[string]any{"tool": name, "args": args}
}

func write(path, content string) map[string]any {
	return call("file_write", map[string]any{"path": path, "content": content})
}

func remove(path string) map[string]any { return call("file_delete", map[string]any{"path": path}) }

// start watches on the screen.
func (p watchPlace) start() {
	p.t.Helper()
	p.screen.types("clear; really watch" + p.flags())
	p.screen.until("q quit")
}

// path returns the path of a file of the workspace.
func (p watchPlace) path(name string) string { return filepath.Join(p.workspace, name) }

// named replaces what differs from run to run.
func named(shown string) string {
	for _, r := range [][2]string{
		{`remit w\S*( +\S+)? +(\d+ waiting)`, "remit watch FOLDER $2"}, {`\d\d:\d\d:\d\d`, "HH:MM:SS"}, {`c_[0-9a-z]{12}`, "ID"}, {`(?m) \d+(\.\d)? m?s {1,7}`, " TOOK "},
	} {
		shown = regexp.MustCompile(r[0]).ReplaceAllString(shown, r[1])
	}
	return shown
}

// golden waits until the screen is the one in a file of testdata/watch.
func (s *screen) golden(name string) {
	s.t.Helper()
	file := filepath.Join(here, "testdata", "watch", name)
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		require.NoError(s.t, os.WriteFile(file, []byte(named(s.shown(false))), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(s.t, err)
	s.when("\n"+string(want), func(shown string) bool { return named(shown) == string(want) })
}

// hostile is the name of a file that wants to control the terminal, to turn the text around, and to be wide and long.
const hostile = "odd\x1b[2J\x1b]0;title\x07\u202egpj.exe 漢字漢字 🙂 "

// TestWatchScreen shows what waits and ended at several widths, with hostile names, and all of one call.
func TestWatchScreen(t *testing.T) {
	p := newWatchPlace(t, 80, 24)
	p.calls(
		write("draft.txt", "one\ntwo\n"), write(hostile+strings.Repeat("long", 30), "x"), call("file_read", map[string]any{"path": "nothing"}),
		call("no_such_tool\x1b[2J", map[string]any{}), remove("draft.txt"),
	)
	p.start()
	p.screen.until("1 waiting")
	p.screen.golden("80.txt")
	p.screen.press("?")
	p.screen.until("Everywhere")
	p.screen.golden("keys.txt")
	p.screen.press("Escape")
	p.screen.until("u undo")
	p.screen.press("Enter")
	require.Contains(t, p.screen.until("a approve  d deny  esc back"), "touches   delete file://workspace/draft.txt")
	p.screen.press("Escape")
	p.screen.until("u undo")
	p.screen.press("Down", "Down", "Down")
	p.screen.until("> ✓ file_write     created odd")
	p.screen.press("Enter")
	shown := p.screen.until("esc back")
	require.Contains(t, shown, `odd\x1b[2J\x1b]0;title\a\u202egpj.exe 漢字漢字 🙂 `)
	require.Contains(t, shown, "1-22 of ", "it scrolls")
	p.screen.press("End")
	p.screen.until("+x")
	p.screen.press("Escape")
	p.screen.until("u undo")
	p.screen.resize(160, 12)
	p.screen.until("longlonglong…")
	p.screen.golden("160.txt")
	p.screen.resize(40, 10)
	p.screen.until("remit wat…")
	p.screen.golden("40.txt")
	p.screen.press("q")
	p.screen.until("$")
}

// TestWatchLive: calls of another process appear as they end and wait, and the selection stays on its call.
func TestWatchLive(t *testing.T) {
	p := newWatchPlace(t, 80, 24)
	p.calls(write("a.txt", "a"))
	p.start()
	p.screen.until("> ✓ file_write     created a.txt")
	p.calls(write("b.txt", "b"))
	p.screen.until("> ✓ file_write     created b.txt") // the first one follows the newest
	p.screen.press("Down")
	p.screen.until("> ✓ file_write     created a.txt")
	p.calls(write("c.txt", "c"), remove("c.txt"))
	shown := p.screen.until("waits for you")
	require.Contains(t, shown, "> ✓ file_write     created a.txt")
	require.Contains(t, shown, "  ✓ file_write     created c.txt")
	require.Contains(t, shown, "1 waiting, 0 running, 3 ended")
}

// TestWatchApproves: a person approves by keys, after the request was shown, and the process of the agent continues the call.
func TestWatchApproves(t *testing.T) {
	p := newWatchPlace(t, 80, 30)
	p.calls(write("a.txt", "one\n"), remove("a.txt"))
	p.start()
	p.screen.until("> … file_delete")
	p.screen.press("a")
	shown := p.screen.until("Approve it?")
	require.Contains(t, shown, "because   look")
	require.Contains(t, shown, "-one")
	p.screen.press("n") // nothing was answered
	p.screen.until("a approve  d deny")
	p.screen.press("a")
	p.screen.until("Approve it?")
	p.screen.press("x", "Down") // neither was this
	p.screen.press("y")
	p.screen.until("approved by ")
	id := p.waits()
	p.screen.press("Escape")
	shown = p.screen.until("answered, not resumed yet") // in the list, until it is resumed
	require.Contains(t, shown, "approved by ")
	require.NotContains(t, shown, "waits for you")
	require.Contains(t, shown, "0 waiting, 1 answered, 0 running")
	code, out := p.agent.types("really resume " + id + " --policy " + p.policy + " --at-end commit" + p.flags())
	require.Zero(t, code, out)
	p.screen.until("deleted a.txt")
	p.screen.gone("not resumed yet")
	require.NoFileExists(t, p.path("a.txt"))
}

// TestWatchAnswersTheDifferenceItShowed: if the file changes after the person saw the difference, y answers nothing, and the person is
// asked about the new one.
func TestWatchAnswersTheDifferenceItShowed(t *testing.T) {
	p := newWatchPlace(t, 80, 30)
	p.calls(write("a.txt", "one\n"), remove("a.txt"))
	p.start()
	p.screen.until("> … file_delete")
	p.screen.press("a")
	require.Contains(t, p.screen.until("Approve it?"), "-one")
	require.NoError(t, os.WriteFile(p.path("a.txt"), []byte("two\n"), 0o600))
	p.screen.press("y")
	p.screen.until("Nothing was answered: the call asks for something else now.")
	shown := p.screen.until("Approve it?")
	require.Contains(t, shown, "-two")
	p.journal(t, func(j journal.Journal) {
		_, c, err := revert.LoadCall(t.Context(), j, p.waits())
		require.NoError(t, err)
		require.Nil(t, c.Answered)
	})
	p.screen.press("y")
	p.screen.until("approved by ")
}

// TestWatchAnswersWhatItShowed: an answer counts for the request on the screen, and for no later one. A commit is answered like a call.
func TestWatchAnswersWhatItShowed(t *testing.T) {
	p := newWatchPlace(t, 80, 24)
	require.NoError(t, os.WriteFile(p.policy, []byte("package remit\nallow contains \"all\" if true\nask_commit contains \"look\" if input.txn.totals.effects > 0\n"), 0o600))
	said := p.calls(write("a.txt", "one\n"))
	txn := regexp.MustCompile(`t_[0-9a-z]{12}`).FindString(said)
	p.start()
	p.screen.until("> … commit         of " + txn)
	p.screen.press("a")
	require.Contains(t, p.screen.until("Approve it?"), "+one")
	// Meanwhile it is denied elsewhere.
	code, out := newPersonShell(t, commandFolder(t)).types("really deny " + txn + p.flags())
	require.Zero(t, code, out)
	p.screen.press("y")
	p.screen.until("the answer was not taken")
	p.screen.press("Escape")
	p.screen.until("denied by")

	said = p.calls(write("b.txt", "two\n"))
	other := regexp.MustCompile(`t_[0-9a-z]{12}`).FindString(said)
	p.screen.until("> … commit         of " + other)
	p.screen.press("a")
	require.Contains(t, p.screen.until("Approve it?"), "+two")
	p.screen.press("y")
	p.screen.until("the commit was approved by ")
	code, out = p.agent.types("really resume " + other + " --at-end commit --policy " + p.policy + p.flags())
	require.Zero(t, code, out)
	p.screen.press("Escape")
	p.screen.gone("of " + other)
}

// waits returns the call that was asked for.
func (p watchPlace) waits() (id string) {
	p.t.Helper()
	p.journal(p.t, func(j journal.Journal) {
		open, err := j.Unfinished(p.t.Context())
		require.NoError(p.t, err)
		for _, o := range open {
			t, err := revert.Load(p.t.Context(), j, o.Txn)
			require.NoError(p.t, err)
			for _, c := range t.Calls {
				if c.Asked != nil {
					id = c.Ref.Call
				}
			}
		}
	})
	require.NotEmpty(p.t, id)
	return id
}

// TestWatchDenies: a denial has the typed reason, and keys of the list are a part of it.
func TestWatchDenies(t *testing.T) {
	p := newWatchPlace(t, 80, 30)
	p.calls(write("a.txt", "one\n"), remove("a.txt"))
	p.start()
	p.screen.until("> … file_delete")
	p.screen.press("d")
	p.screen.until("reason:")
	p.screen.press("q", "u", "i", "t", "!", "BSpace", "?")
	p.screen.until("reason: quit?_")
	p.screen.press("Enter")
	p.screen.until("denied by ")
	id := p.waits()
	p.journal(t, func(j journal.Journal) {
		_, c, err := revert.LoadCall(t.Context(), j, id)
		require.NoError(t, err)
		require.NotNil(t, c.Answered)
		require.False(t, c.Answered.Approved)
		require.Equal(t, "quit?", c.Answered.Why)
	})
	require.FileExists(t, p.path("a.txt"))
}

// TestWatchUndoes: an undo shows its plan, does nothing before y, and nothing at all if the plan is another one by then.
func TestWatchUndoes(t *testing.T) {
	p := newWatchPlace(t, 80, 24)
	p.calls(write("a.txt", "one\n"), write("b.txt", "two\n"))
	p.start()
	p.screen.press("u")
	p.screen.until("2 of 2 changes would be reverted")
	p.screen.press("n")
	p.screen.until("u undo")
	require.FileExists(t, p.path("a.txt"))
	p.screen.press("u")
	p.screen.until("Undo it as planned?")
	require.NoError(t, os.WriteFile(p.path("b.txt"), []byte("of a person\n"), 0o600))
	p.screen.press("y")
	shown := p.screen.until("Nothing was done: the plan is another one now.")
	require.NotContains(t, shown, "Undo it as planned?", "a key that is typed twice does not answer the next question")
	p.screen.press("y", "y")
	p.screen.until("Undo it as planned?")
	require.FileExists(t, p.path("a.txt"))
	p.screen.press("y")
	p.screen.until("redo these changes: remit redo")
	require.NoFileExists(t, p.path("a.txt"))
	require.FileExists(t, p.path("b.txt"), "it is never overwritten")
	p.screen.press("Escape")
	p.screen.until("(reverted: all)")
	p.screen.press("u")
	p.screen.until("conflict")
	require.NotContains(t, p.screen.shown(false), "Undo it as planned?", "there is nothing that it could do")
}

// TestWatchRefusesAnAgent: a person cannot be told from an agent that opened the screen itself, so its keys approve nothing.
func TestWatchRefusesAnAgent(t *testing.T) {
	p := newWatchPlace(t, 100, 30)
	p.calls(write("a.txt", "one\n"))
	script := filepath.Join(p.dir, "own.jsonl")
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_delete","args":{"path":"a.txt"}}`+"\n"), 0o600))
	agent := filepath.Join(p.dir, "agent.sh")
	require.NoError(t, os.WriteFile(agent, []byte("really run --on-ask wait --policy "+p.policy+p.flags()+" "+script+"; clear; really watch"+p.flags()+"; true\n"), 0o600))
	p.screen.types("sh " + agent)
	p.screen.until("> … file_delete")
	p.screen.press("a")
	p.screen.until("Approve it?")
	p.screen.press("y")
	shown := p.screen.until("a person must approve")
	require.Contains(t, shown, "not answered")
	id := p.waits()
	p.journal(t, func(j journal.Journal) {
		_, c, err := revert.LoadCall(t.Context(), j, id)
		require.NoError(t, err)
		require.Nil(t, c.Answered)
	})
}

// TestWatchPassphrase: the screen makes room for the passphrase that approvals need, and comes back.
func TestWatchPassphrase(t *testing.T) {
	p := newWatchPlace(t, 80, 24)
	p.calls(write("a.txt", "one\n"), remove("a.txt"))
	require.NoError(t, approval.WriteSettings(p.state, approval.Settings{Passphrase: approval.NewVerifier("a long phrase")}))
	p.start()
	approve := func(phrase string) {
		p.screen.until("> … file_delete")
		p.screen.press("a")
		p.screen.until("Approve it?")
		p.screen.press("y")
		p.screen.until("passphrase for approvals (not shown):")
		p.screen.types(phrase)
	}
	approve("another phrase")
	p.screen.until("the passphrase is not the one that was set")
	p.screen.press("Escape")
	approve("a long phrase")
	p.screen.until("approved by ")
	p.screen.press("q")
	p.screen.until("$")
}

// TestWatchEnds: a signal, a lost terminal or a key ends the command, and the terminal is as before.
func TestWatchEnds(t *testing.T) {
	p := newWatchPlace(t, 80, 24)
	p.calls(write("a.txt", "a"))
	for _, how := range []string{"q", "C-c", "TERM", "HUP", "INT"} {
		p.screen.types("clear; stty -a > before; really watch" + p.flags() + "; echo code $?; stty -a > after; cmp before after && echo same; rm before after")
		p.screen.until("q quit")
		if len(how) > 1 && how != "C-c" {
			_, out := p.agent.types("kill -" + how + " $(pgrep -f 'really watch --workspace " + p.workspace + "')")
			require.Empty(t, out)
		} else {
			p.screen.press(how)
		}
		shown := p.screen.until("same")
		require.Contains(t, shown, "code 0", how)
		require.NotContains(t, shown, "u undo", "the screen from before is back")
	}
}

// TestWatchColours: the screen has colours, and none with NO_COLOR.
func TestWatchColours(t *testing.T) {
	for _, set := range []string{"", "1"} {
		p := newWatchPlace(t, 80, 24, "NO_COLOR="+set)
		p.calls(write("a.txt", "a"), remove("a.txt"))
		p.start()
		p.screen.until("waits for you")
		shown := p.screen.shown(true)
		require.Equal(t, set == "", strings.Contains(shown, "\x1b[3"), "%q", shown)
	}
}

// TestWatchRuns: a call in flight is shown with its time, and goes to the others when it ends.
func TestWatchRuns(t *testing.T) {
	slow, enter, leave := slowTool(t)
	w := newWatching(t, slow)
	s := newScreen(t, commandFolder(t), 80, 12)
	s.types("clear; really watch --workspace " + w.workspace + " --state " + w.state)
	s.until("no call has ended yet")
	ended := make(chan error, 1)
	go func() {
		_, err := w.session.Call(t.Context(), "slow", "x")
		ended <- err
	}()
	<-enter
	shown := s.until("1 running")
	require.Contains(t, shown, "> ▸ slow")
	s.press("Enter")
	s.until("in flight")
	s.press("Escape")
	leave <- struct{}{}
	require.NoError(t, <-ended)
	shown = s.until("0 running, 1 ended")
	require.Contains(t, shown, "> ✓ slow")
}
