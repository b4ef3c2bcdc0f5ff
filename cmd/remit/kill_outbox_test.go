//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// killMailEnv names the file that the mail tools of a killed child deliver to.
const killMailEnv = "REMIT_TEST_MAIL"

// mailTools deliver their text by a line in a file, which outlives the process: one
// that nobody can ask, and one of whose keys the receiver knows.
func mailTools(box string) []tool.Tool {
	if box == "" {
		return nil
	}
	deliver := func(name string, idempotent bool) tool.Tool {
		made, err := tool.FromSpec(tool.Spec{
			Name: name, Description: "Delivers a line.", EffectClass: effect.Pivot, Hints: tool.Hints{Idempotent: idempotent},
			Execute: func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
				var text string
				err := json.Unmarshal(in, &text)
				line := text + " " + tc.Call().Key + "\n"
				if idempotent {
					data, _ := os.ReadFile(box)
					if bytes.Contains(data, []byte(line)) {
						return tool.Text("it was there"), nil
					}
				}
				f, ferr := os.OpenFile(box, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err = errors.Join(err, ferr); err != nil {
					return tool.Result{}, err
				}
				_, err = f.WriteString(line)
				return tool.Text("delivered"), errors.Join(err, f.Sync(), f.Close())
			},
		})
		if err != nil {
			panic(err)
		}
		return made
	}
	return []tool.Tool{deliver("mail", false), deliver("keyed", true)}
}

const outboxScript = `{"tool":"file_write","args":{"path":"a.txt","content":"one"}}
{"tool":"mail","args":"first"}
{"tool":"keyed","args":"second"}
{"savepoint":"half"}
{"tool":"mail","args":"never"}
{"revert_to":"half"}
{"tool":"mail","args":"third"}
{"tool":"file_write","args":{"path":"b.txt","content":"two"}}
{"tool":"keyed","args":"fourth"}
`

const outboxPolicy = `package remit
hold contains "mails leave with the commit" if input.call.effect_class == "pivot"
allow contains "files" if input.access.resource.kind == "file"
`

type outboxSetup struct{ ws, state, script, policy, box string }

func newOutboxSetup(t *testing.T) outboxSetup {
	dir := t.TempDir()
	w := outboxSetup{filepath.Join(dir, "ws"), filepath.Join(dir, "state"), filepath.Join(dir, "script.jsonl"), filepath.Join(dir, "hold.rego"), filepath.Join(dir, "box")}
	killWorkspace(t, w.ws)
	require.NoError(t, os.WriteFile(w.script, []byte(outboxScript), 0o600))
	require.NoError(t, os.WriteFile(w.policy, []byte(outboxPolicy), 0o600))
	t.Setenv(killMailEnv, w.box)
	return w
}

// delivered are the texts in the box, in the order of arrival.
func (w outboxSetup) delivered(t *testing.T) (texts []string) {
	data, err := os.ReadFile(w.box)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	for line := range strings.Lines(string(data)) {
		text, _, _ := strings.Cut(line, " ")
		texts = append(texts, text)
	}
	return texts
}

func (w outboxSetup) command(t *testing.T, argv ...string) (int, string) {
	var out bytes.Buffer
	code := run(context.Background(), argv, cli.Env{
		In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }, ExtraTools: mailTools(w.box),
		Host: host.Real(), Username: func() (string, error) { return "tester", nil },
	})
	return code, out.String()
}

func (w outboxSetup) only(t *testing.T) *revert.Txn {
	j, err := sqlite.Open(t.Context(), w.state)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	var found *revert.Txn
	for e, err := range j.Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindBegun}}) {
		require.NoError(t, err)
		txn, err := revert.Load(t.Context(), j, e.Header.Txn)
		require.NoError(t, err)
		if txn.Reverts == "" {
			require.Nil(t, found)
			found = txn
		}
	}
	return found
}

// TestKilledCommit kills `remit run` with SIGKILL at each scheduling point of its
// commit and at some before it. Each time, what was held arrives at most once and in
// order; `remit resume --at-end commit` sends the rest, and only the one call that was
// in flight may be left unknown. Before the commit nothing has arrived.
func TestKilledCommit(t *testing.T) {
	w := newOutboxSetup(t)
	trace := filepath.Join(t.TempDir(), "trace")
	argv := func(w outboxSetup) []string {
		return []string{"run", "--workspace", w.ws, "--state", w.state, "--policy", w.policy, w.script}
	}
	require.NoError(t, child(t, 0, trace, argv(w)...))
	all := []string{"first", "second", "third", "fourth"}
	require.Equal(t, all, w.delivered(t))
	raw, err := os.ReadFile(trace)
	require.NoError(t, err)
	points := strings.Fields(string(raw))
	begins := slices.IndexFunc(points, func(p string) bool { return strings.Contains(p, "committing") })
	require.Positive(t, begins)
	unknown, resumed, kills := 0, 0, 0
	for at := 1; at <= len(points); at++ {
		if at <= begins && at%40 != 0 {
			continue
		}
		kills++
		w := newOutboxSetup(t)
		err := child(t, at, "", argv(w)...)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "killed at point %d, %s", at, points[at-1])
		status, _ := exit.Sys().(syscall.WaitStatus)
		require.Equal(t, syscall.SIGKILL, status.Signal())
		if at <= begins {
			require.Empty(t, w.delivered(t), "killed at point %d, %s", at, points[at-1])
		}
		code, out := w.command(t, "recover", "--workspace", w.ws, "--state", w.state)
		require.Contains(t, []int{0, int(cli.ExitUnknown)}, code, out)
		txn := w.only(t)
		if txn == nil {
			continue // it had not begun
		}
		committing := txn.Committing
		// An unknown release of a receiver that knows the keys is sent again.
		for n := 0; txn.End == ""; n++ {
			require.Less(t, n, 3, "killed at point %d, %s", at, points[at-1])
			code, out = w.command(t, "resume", "--workspace", w.ws, "--state", w.state, "--policy", w.policy, "--at-end", "commit", txn.ID)
			require.Contains(t, []int{0, int(cli.ExitUnknown)}, code, out)
			txn = w.only(t)
			resumed++
		}
		require.Equal(t, revert.TxnCommitted, txn.State())
		var want, doubt []string
		for _, c := range txn.Calls {
			if c.Held == nil || c.Dropped != nil {
				continue
			}
			var text string
			require.NoError(t, json.Unmarshal(c.Held.Input, &text))
			if c.Phase == revert.PhaseUnknown {
				doubt = append(doubt, text)
				continue
			}
			require.Equal(t, revert.PhaseDone, c.Phase)
			want = append(want, text)
		}
		got := w.delivered(t)
		require.LessOrEqual(t, len(doubt), 1)
		unknown += len(doubt)
		for _, d := range doubt {
			require.Contains(t, []string{"first", "third"}, d)
			got = slices.DeleteFunc(got, func(s string) bool { return s == d }) // it arrived, or not
		}
		require.Equal(t, want, got, "killed at point %d, %s", at, points[at-1])
		if committing {
			require.Len(t, append(want, doubt...), len(all))
		}
		fsck, out := w.command(t, "fsck", "--workspace", w.ws, "--state", w.state)
		require.Zero(t, fsck, out)
	}
	t.Logf("%d kills at %d points, %d commits resumed, %d calls unknown", kills, len(points), resumed, unknown)
	require.Positive(t, unknown)
	require.Positive(t, resumed)
}
