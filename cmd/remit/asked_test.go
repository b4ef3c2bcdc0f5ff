//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/postgres"
)

// twoNodes are two state folders that share a journal. The second one has the
// files of a transaction.
type twoNodes struct {
	t             *testing.T
	dir, url, txn string
}

func newTwoNodes(t *testing.T) twoNodes {
	t.Helper()
	url, _ := pgtest.Database(t)
	n := twoNodes{t: t, dir: t.TempDir(), url: url}
	for _, name := range []string{"one", "two"} {
		require.NoError(t, os.MkdirAll(filepath.Join(n.dir, name, "sub"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(n.dir, name, "b.txt"), []byte("was\n"), 0o600))
	}
	script := `{"tool":"file_write","args":{"path":"a.txt","content":"new\n"}}
{"tool":"file_write","args":{"path":"b.txt","content":"mine\n"}}
{"tool":"file_delete","args":{"path":"sub"}}
`
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "script.jsonl"), []byte(script), 0o600))
	n.must(0, "run", "one", filepath.Join(n.dir, "script.jsonl"))
	n.begin()
	return n
}

// begin runs the script on the second node.
func (n *twoNodes) begin() {
	out := n.must(0, "run", "two", filepath.Join(n.dir, "script.jsonl"), "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var sum struct {
		Txn string `json:"txn"`
	}
	require.NoError(n.t, json.Unmarshal([]byte(lines[len(lines)-1]), &sum), out)
	n.txn = sum.Txn
}

func (n *twoNodes) argv(verb, node string, args ...string) []string {
	return append([]string{verb, "--journal", n.url, "--workspace", filepath.Join(n.dir, node), "--state", filepath.Join(n.dir, node+".st")}, args...)
}

// ask is the command line of the first node, without its workspace.
func (n *twoNodes) ask(verb string, args ...string) []string {
	return append([]string{verb, n.txn, "--journal", n.url, "--state", filepath.Join(n.dir, "one.st")}, args...)
}

func (n *twoNodes) must(code int, verb, node string, args ...string) string {
	n.t.Helper()
	return n.mustRun(code, n.argv(verb, node, args...)...)
}

func (n *twoNodes) mustRun(code int, argv ...string) string {
	n.t.Helper()
	got, out := command(n.t, argv...)
	require.Equal(n.t, code, got, out)
	return out
}

func (n *twoNodes) files() string {
	var all []string
	for name, is := range snapshot(n.t, filepath.Join(n.dir, "two")) {
		all = append(all, name+": "+is[strings.LastIndexByte(is, ' ')+1:])
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// links counts the revert and redo transactions of the transaction.
func (n *twoNodes) links() int {
	j, err := postgres.Open(n.t.Context(), n.url)
	require.NoError(n.t, err)
	defer func() { require.NoError(n.t, j.Close()) }()
	t, err := revert.Load(n.t.Context(), j, n.txn)
	require.NoError(n.t, err)
	return len(t.RevertedBy)
}

// report is a report without IDs, which differ in each run.
func (n *twoNodes) report(out string) string {
	var is struct {
		Complete bool             `json:"complete"`
		State    string           `json:"state"`
		Items    []map[string]any `json:"items"`
		Left     []any            `json:"not_reverted"`
		Waits    any              `json:"waits"`
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.NoError(n.t, json.Unmarshal([]byte(lines[len(lines)-1]), &is), out)
	for _, item := range is.Items {
		delete(item, "call")
	}
	text, err := json.Marshal(is)
	require.NoError(n.t, err)
	return string(text)
}

// TestKilledTaker kills the command that does what another node asked, at each
// step: the next one completes it, once, and the report is that of a local
// command. Whatever a person takes back meanwhile stays taken back.
func TestKilledTaker(t *testing.T) {
	t.Parallel()
	n := newTwoNodes(t)
	n.mustRun(0, append(n.argv("revert", "two"), n.txn)...)
	before := n.files()
	n.begin()
	trace := filepath.Join(n.dir, "trace")
	require.NotContains(t, before, "a.txt")
	locally := n.report(n.mustRun(0, append(n.argv("revert", "two", "--json"), n.txn)...))
	n.begin()
	n.mustRun(4, n.ask("revert")...)
	require.NoError(t, child(t, 0, trace, n.argv("recover", "two")...))
	require.Equal(t, locally, n.report(n.mustRun(0, n.ask("revert", "--json")...)))
	raw, err := os.ReadFile(trace)
	require.NoError(t, err)
	points := strings.Fields(string(raw))
	require.Contains(t, points, "request.take")
	require.Contains(t, points, "request.answer")
	did := 0
	for at, point := range points {
		if !strings.HasPrefix(point, "request.") && !strings.HasPrefix(point, "journal.append") && point != "revert.apply" || at < slices.Index(points, "request.take") {
			continue
		}
		about := fmt.Sprintf("killed at point %d, %s", at+1, point)
		n.begin()
		n.mustRun(4, n.ask("revert")...)
		killed(t, child(t, at+1, "", n.argv("recover", "two")...), about)
		done := n.reverted()
		if done { // a person takes it back before the next process looks
			did++
			n.mustRun(0, append(n.argv("redo", "two"), n.txn)...)
		}
		out := n.must(0, "recover", "two")
		require.Equal(t, at <= slices.Index(points, "request.answer"), strings.Contains(out, "which tester asked for"), about)
		require.Equal(t, done, n.files() != before, "%s: %s", about, n.files())
		require.Equal(t, map[bool]int{false: 1, true: 2}[done], n.links(), about)
		out = n.mustRun(0, n.ask("revert", "--json")...)
		require.Contains(t, out, `"complete":true`, about)
		for _, name := range []string{"a.txt", "b.txt", "sub"} {
			require.Contains(t, out, `"file://workspace/`+name+`"`, about)
		}
		if done {
			state := map[bool]string{false: "reverted", true: "committed"}[at <= slices.Index(points, "request.answer")]
			require.Contains(t, out, `"state":"`+state+`"`, "%s: when the report was written", about)
			n.mustRun(0, append(n.argv("revert", "two"), n.txn)...)
		}
	}
	require.Positive(t, did, "kills between the work and the answer")
	n.must(0, "fsck", "one")
}

// reverted reports whether the transaction is reverted now.
func (n *twoNodes) reverted() bool {
	j, err := postgres.Open(n.t.Context(), n.url)
	require.NoError(n.t, err)
	defer func() { require.NoError(n.t, j.Close()) }()
	t, err := revert.Load(n.t.Context(), j, n.txn)
	require.NoError(n.t, err)
	if t.State() != revert.TxnReverted {
		return false
	}
	link, err := revert.Load(n.t.Context(), j, t.RevertedBy[len(t.RevertedBy)-1])
	require.NoError(n.t, err)
	return link.End != ""
}

var _ journal.Requests = (*postgres.Node)(nil)

// interrupting cancels a command when it says that it waits.
type interrupting struct {
	strings.Builder
	cancel func()
}

func (w *interrupting) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "waiting for its report") {
		w.cancel()
	}
	return w.Builder.Write(b)
}

// TestInterruptedWait: a person who interrupts the wait is told that the request
// stays.
func TestInterruptedWait(t *testing.T) {
	n := newTwoNodes(t)
	alive, err := postgres.OpenNode(t.Context(), n.url, filepath.Join(n.dir, "two.st")) // it does nothing
	require.NoError(t, err)
	defer func() { require.NoError(t, alive.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	said := &interrupting{cancel: cancel}
	code := run(ctx, n.ask("revert"), cli.Env{
		In: strings.NewReader(""), Out: io.Discard, Err: said, Getenv: func(string) string { return "" },
		Host: host.Real(), Username: func() (string, error) { return "tester", nil }, Caller: personHere,
	})
	require.Equal(t, int(cli.ExitPending), code, said.String())
	require.Contains(t, said.String(), "interrupted; the revert of "+n.txn+" still waits for node "+alive.NodeID())
	n.mustRun(0, n.ask("revert", "--withdraw")...)
}
