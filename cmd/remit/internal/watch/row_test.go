package watch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

func newModel() *model {
	a := cli.NewApp(cli.Env{Host: host.Real()})
	return &model{watcher: &watcher{app: a, title: "/home/me/work"}, ctx: context.Background(), now: time.Unix(1000, 0), width: 80, height: 24}
}

func endedCall(id, tool, args string) callview.EndedCall {
	return callview.EndedCall{
		Line: callview.Line{ID: id, Tool: tool, Args: args, Status: "done", Kind: "good", Class: "pure", Took: "1 ms"},
		Call: &revert.Call{Ref: record.CallRef{Txn: "t", Call: id}, Ended: time.Unix(1000, 0)},
	}
}

// TestScreenFits draws hostile calls on screens of any size: no line is wider than the screen, there are no more lines than it has, and no
// character controls the terminal.
func TestScreenFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		m.title = rapid.String().Draw(t, "title")
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a漢🙂\x1b\u202e\u200d\u0301\ufe0f\n[2J"))))
		for i := range rapid.IntRange(0, 30).Draw(t, "calls") {
			c := endedCall(fmt.Sprint("c_", i), text.Draw(t, "tool"), callview.Arguments([]byte(`{"a":"x"}`), nil))
			c.Changes = []callview.ChangeLine{{Verb: "created", Resource: text.Draw(t, "resource")}}
			c.Kind = rapid.SampledFrom([]string{"good", "bad", "doubt", "faint"}).Draw(t, "kind")
			m.add(news{Step: callview.Step{Ended: []callview.EndedCall{c}}})
		}
		m.waiting = []waitLine{{ID: "c_w", Tool: text.Draw(t, "waits"), Who: text.Draw(t, "who"), Answer: answerWords(true, text.Draw(t, "by"))}}
		m.damage = text.Draw(t, "damage")
		for range rapid.IntRange(0, 5).Draw(t, "sizes") {
			m.width, m.height = rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(1, 60).Draw(t, "height")
			m.move(rapid.SampledFrom([]string{"up", "down", "pgdown", "end", "home"}).Draw(t, "key"))
			checkFits(t, m)
			m.pane = &pane{title: "call", text: cli.Printable(text.Draw(t, "text")) + "\nmore", asks: asksDeny, why: text.Draw(t, "why")}
			checkFits(t, m)
			m.pane = nil
		}
	})
}

func checkFits(t *rapid.T, m *model) {
	lines := strings.Split(m.View().Content, "\n")
	if len(lines) > m.height {
		t.Fatalf("%d lines of %d", len(lines), m.height)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > m.width {
			t.Fatalf("%d cells of %d: %q", w, m.width, l)
		}
		if i := strings.IndexFunc(l, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("%q", l)
		}
	}
}

// TestKeptCalls: the screen keeps the newest calls and counts all.
func TestKeptCalls(t *testing.T) {
	m := newModel()
	for i := range 3 * keptEnded {
		m.add(news{Step: callview.Step{Ended: []callview.EndedCall{endedCall(fmt.Sprint(i), "x", "")}}})
	}
	require.Len(t, m.ended, keptEnded)
	require.LessOrEqual(t, cap(m.ended), 2*keptEnded+2)
	require.Equal(t, fmt.Sprint(3*keptEnded-1), m.ended[keptEnded-1].ID)
	require.Contains(t, m.View().Content, "3000 ended")
}

// TestSelection: the selection stays on its call while others come, goes to the one in its place when it is gone, and follows the newest on
// the first place.
func TestSelection(t *testing.T) {
	m := newModel()
	add := func(ids ...string) {
		for _, id := range ids {
			m.add(news{Step: callview.Step{Ended: []callview.EndedCall{endedCall(id, "x", "")}}})
		}
	}
	on := func() string {
		e, _ := m.selected()
		return e.key
	}
	require.Empty(t, on())
	m.move("down")
	add("a", "b", "c")
	require.Equal(t, "c", on())
	m.move("down")
	require.Equal(t, "b", on())
	add("d", "e")
	require.Equal(t, "b", on())
	m.waiting = []waitLine{{ID: "w", Tool: "x"}}
	require.Equal(t, "b", on())
	m.move("home")
	require.Equal(t, "w", on())
	m.waiting = nil
	require.Equal(t, "e", on())
	m.move("end")
	require.Equal(t, "a", on())
	m.ended = m.ended[1:]
	require.Equal(t, "b", on())
	m.move("up")
	require.Equal(t, "c", on())
	m.move("home")
	require.Equal(t, "e", on())
	add("f")
	require.Equal(t, "f", on())
	m.ended = nil
	require.Empty(t, on())
}

// TestLongTextIsReadFirst: what is approved or undone can be longer than the screen. It is not before its end was there.
func TestLongTextIsReadFirst(t *testing.T) {
	for _, asks := range []question{asksApprove, asksRevert} {
		m := newModel()
		m.width, m.height = 80, 24
		m.pane = &pane{text: strings.Repeat("line\n", 100), asks: asks, request: Request{Waits: true, Covers: true}}
		for _, key := range []string{"y", "o", "space", "y"} {
			require.Contains(t, m.View().Content, "of 100: read to the end")
			m.paneKey(key)
			require.Empty(t, m.busy, key)
		}
		m.paneKey("end")
		require.NotContains(t, m.View().Content, "read to the end")
		m.paneKey("home")
		require.NotContains(t, m.View().Content, "read to the end", "it was there once")
		m.paneKey("y")
		require.NotEmpty(t, m.busy)
	}
	m := newModel()
	m.width, m.height = 80, 2
	m.pane = &pane{text: "one line", asks: asksRevert}
	_ = m.View()
	m.paneKey("y")
	require.Empty(t, m.busy, "nothing of it is visible")
}
