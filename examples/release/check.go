package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// concurrentEdits are changes of another actor after the agent's calls.
type concurrentEdits struct {
	tool  string // the tool whose call then cannot be reverted
	thing string // by its name in a snapshot
	do    func(ctx context.Context, w *releaseEnv) error
}

var concurrentChanges = map[string]concurrentEdits{
	"tree": {"file_edit", "CHANGELOG.md", func(_ context.Context, w *releaseEnv) error {
		return os.WriteFile(filepath.Join(w.workspace(), "CHANGELOG.md"), []byte("# Changelog\n\nLost, sorry.\n"), 0o644)
	}},
	"database": {"sql_execute", "releases/2", func(ctx context.Context, w *releaseEnv) error {
		return w.sql(ctx, "UPDATE releases SET state = 'withdrawn' WHERE id = 2")
	}},
	"service": {"release_create", "/releases/r3", func(_ context.Context, w *releaseEnv) error {
		w.site.replace("/releases/r3", `{"id":"r3","version":"1.5.0","file":"greet-1.5.0-mended.tar"}`)
		return nil
	}},
}

// changeConcurrently changes one item, and returns the whole world afterwards.
func (w *releaseEnv) changeConcurrently(ctx context.Context, t *progressWriter, c choices) (snapshot, error) {
	if c.foreign != "" {
		m := concurrentChanges[c.foreign]
		if err := m.do(ctx, w); err != nil {
			return nil, err
		}
		t.title("Somebody else changes " + m.thing)
	}
	return w.snapshot(ctx)
}

// check compares the world with the one before. Everything is as before, except
// for the other actor's items, which are as that actor left them. The report
// must list these, and the sent messages, as not undone.
func (w *releaseEnv) check(ctx context.Context, t *progressWriter, c choices, before, left snapshot, report revert.Report) error {
	now, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	t.title("The world now, held against the world before")
	want := []string{"team_tell"}
	theirs := concurrentChanges[c.foreign]
	var wrong []error
	for _, part := range parts {
		differ := differences(before[part], now[part])
		switch {
		case part == c.foreign && slices.Equal(differ, []string{theirs.thing}) && left[part][theirs.thing] == now[part][theirs.thing]:
			t.say("%-10s IDENTICAL but for %s, which is as somebody else left it", part, theirs.thing)
			want = append(want, theirs.tool)
		case len(differ) == 0 && part != c.foreign:
			t.say("%-10s IDENTICAL, %s", part, count(len(now[part]), "thing"))
		default:
			t.say("%-10s DIFFERENT: %s", part, strings.Join(differ, ", "))
			wrong = append(wrong, fmt.Errorf("the %s is not as it should be: %s", part, strings.Join(differ, ", ")))
		}
	}
	mails := 0
	if c.commit {
		want, mails = append(want, "mail_send"), 1
	}
	t.say("%-10s %s sent", "mail", count(w.mails(), "letter"))
	if w.mails() != mails {
		wrong = append(wrong, fmt.Errorf("%d letters were sent, want %d", w.mails(), mails))
	}
	var names []string
	for _, item := range report.NotReverted() {
		names = append(names, item.Tool)
	}
	slices.Sort(names)
	slices.Sort(want)
	t.say("%-10s %s", "not undone", strings.Join(names, ", "))
	if !slices.Equal(names, want) {
		wrong = append(wrong, fmt.Errorf("the report says that these were not undone: %q, want %q", names, want))
	}
	return errors.Join(wrong...)
}

// progressWriter writes the progress for people.
type progressWriter struct {
	out  io.Writer
	site string // its address differs from run to run
}

func (t *progressWriter) say(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), t.site, "http://SITE")
	_, _ = fmt.Fprintln(t.out, "   "+text)
}

func (t *progressWriter) title(text string) { _, _ = fmt.Fprintf(t.out, "\n== %s\n", text) }

func (t *progressWriter) snapshot(title string, s snapshot) {
	t.title(title)
	for _, part := range parts {
		t.say("%-10s %s", part, count(len(s[part]), "thing"))
	}
}

// call reports how one call ended; a released one has no number.
func (t *progressWriter) call(n int, out tool.Outcome) {
	number := "  "
	if n > 0 {
		number = fmt.Sprintf("%2d", n)
	}
	text := fmt.Sprintf("%s %-14s %-11s %s", number, out.Tool, out.EffectClass, out.Status)
	if len(out.Changes) > 0 {
		text += ", " + count(len(out.Changes), "change")
	}
	t.say("%s", text)
	if out.Error == nil {
		return
	}
	t.say("   why %s", out.Error.Why)
	if out.Tool == "shell_run" && (out.Status == tool.StatusDenied || out.Status == tool.StatusFailed) {
		t.say("   NO PROGRAM RAN: this machine does not give the sandbox that is demanded, and nothing runs in")
		t.say("   a weaker one. remit doctor says what is missing. The rest of the work goes on without it.")
	}
}

// changes names the items that differ from before; for the tree only their
// number.
func (t *progressWriter) changes(title string, a, b snapshot, w *releaseEnv) {
	t.title(title)
	for _, part := range parts {
		differ := differences(a[part], b[part])
		text := fmt.Sprintf("%-10s %s", part, count(len(differ), "thing"))
		if part != "tree" && len(differ) > 0 {
			text += ": " + strings.Join(differ, ", ")
		}
		t.say("%s", text)
	}
	t.say("%-10s %s sent", "mail", count(w.mails(), "letter"))
}

// report prints the result of each call, newest first, and each item that was
// not undone.
func (t *progressWriter) report(r revert.Report) {
	for i := 0; i < len(r.Items); {
		j, restored := i, 0
		for ; j < len(r.Items) && r.Items[j].Call == r.Items[i].Call; j++ {
			if r.Items[j].Outcome == effect.Restored {
				restored++
			}
		}
		switch {
		case r.Items[i].Action == revert.ActionDrop:
			t.say("%-14s dropped: it never ran", r.Items[i].Tool)
		case restored > 0:
			t.say("%-14s %s reverted", r.Items[i].Tool, count(restored, "change"))
		}
		for _, item := range r.Items[i:j] {
			if !item.Outcome.Clean() {
				what, _, _ := strings.Cut(item.Resource, "#") // the number of the call follows the URL
				t.say("%-14s NOT UNDONE, %s: %s", item.Tool, item.Outcome, what)
				t.say("%-14s     why %s", "", item.Why)
			}
		}
		i = j
	}
	t.say("the transaction is %s: %d of %s not undone", r.State, len(r.NotReverted()), count(len(r.Items), "change"))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
