//go:build !portable

package hook

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUpgrade replaces remit while agents work. No call is lost, and all that a
// prompt did before and after can be reverted.
func TestUpgrade(t *testing.T) {
	old := build(t, "old", 2*time.Hour, "", "main.other=old")
	newer := altered(t, old, time.Hour)
	foreign := build(t, "foreign", 0, "", "github.com/remit-dev/remit/internal/hookclient.protocol=remit/0")
	foreignOld := foreign + "-old"
	raw, err := os.ReadFile(foreign)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(foreignOld, raw, 0o700))
	require.NoError(t, os.Chtimes(foreignOld, time.Unix(1e9, 0), time.Unix(1e9, 0)))
	runs := func(p *place, bin, why string) {
		t.Helper()
		_, program := p.daemon()
		require.Equal(t, bin, program, "%s\n%s", why, p.log())
	}

	t.Run("between the calls of a prompt", func(t *testing.T) {
		p := newPlace(t)
		p.write("f", "zero")
		require.Zero(t, p.event(old, "s", "UserPromptSubmit", map[string]any{"prompt_id": "p1", "prompt": "do it"}).code)
		p.before(old, "s", "p1", "u1")
		p.write("f", "one")
		p.after(newer, "s", "p1", "u1")
		runs(p, old, "the call was in flight")
		p.before(newer, "s", "p1", "u2")
		runs(p, newer, "nothing was in flight")
		p.write("g", "two")
		p.after(old, "s", "p1", "u2")
		runs(p, newer, "an older client is served")
		p.before(old, "s", "p1", "u3")
		p.write("f", "three")
		p.after(old, "s", "p1", "u3")
		require.Zero(t, p.event(old, "s", "Stop", map[string]any{"prompt_id": "p1"}).code)
		runs(p, newer, "an older client does not replace it")
		log := p.remit(newer, "", "log")
		require.Contains(t, log.out, "prompt p1 of claude-code: do it")
		undo := p.remit(newer, "", "undo", "p1")
		require.Equal(t, "zero", p.read("f"), "%+v\n%+v", log, undo)
		require.Empty(t, p.read("g"))
	})

	t.Run("while another agent works", func(t *testing.T) {
		p := newPlace(t)
		p.before(old, "a", "p1", "u1")
		p.before(newer, "b", "p2", "u2")
		runs(p, old, "two calls are in flight")
		p.write("f", "both")
		p.after(newer, "b", "p2", "u2")
		runs(p, old, "a call is in flight")
		p.after(old, "a", "p1", "u1")
		require.Zero(t, p.event(newer, "b", "Stop", nil).code)
		runs(p, newer, "nothing was in flight")
	})

	t.Run("many agents at once", func(t *testing.T) {
		p := newPlace(t)
		p.before(old, "first", "p", "u")
		p.after(old, "first", "p", "u")
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				session, bin := fmt.Sprint("s", i), newer
				if i%2 == 0 {
					bin = old
				}
				for n := range 3 {
					id := fmt.Sprint("u", i, n)
					p.before(bin, session, "p"+session, id)
					p.write("f"+id, id)
					p.after(bin, session, "p"+session, id)
				}
			})
		}
		all.Wait()
		require.Zero(t, p.event(newer, "first", "Stop", nil).code)
		runs(p, newer, "nothing is in flight")
		require.NotContains(t, p.log(), "panic")
		for i := range 6 {
			for n := range 3 {
				require.Contains(t, p.remit(newer, "", "log", fmt.Sprint("ps", i)).out, fmt.Sprint("make u", i, n))
			}
		}
	})

	t.Run("another protocol", func(t *testing.T) {
		p := newPlace(t)
		p.before(old, "a", "p1", "u1")
		a := p.event(foreign, "a", "PreToolUse", use("p1", "u2"))
		require.Equal(t, 2, a.code, "%+v", a)
		require.Contains(t, a.err, "restart the agents that run, or try again")
		a = p.event(foreignOld, "a", "PreToolUse", use("p1", "u2"))
		require.Equal(t, 2, a.code, "%+v", a)
		require.Contains(t, a.err, "run remit connect again, and restart the agent")
		a = p.event(foreignOld, "a", "PostToolUse", use("p1", "u2"))
		require.Equal(t, 1, a.code, "%+v", a)
		p.write("f", "one")
		p.after(old, "a", "p1", "u1")
		runs(p, old, "it has served its own client to the end")
		p.before(foreign, "a", "p1", "u2")
		runs(p, foreign, "nothing was in flight")
		a = p.event(old, "a", "PostToolUse", use("p1", "u2"))
		require.Equal(t, 1, a.code, "%+v", a)
		require.Contains(t, a.err, "run remit connect again, and restart the agent")
		p.after(foreign, "a", "p1", "u2")
		require.Equal(t, 1, strings.Count(p.remit(foreign, "", "log", "p1").out, "make u1"))
	})
}
