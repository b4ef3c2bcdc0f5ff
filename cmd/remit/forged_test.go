//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// forge adds a row to the requests, like the first one with other columns.
func (n *twoNodes) forge(columns, values string) {
	n.t.Helper()
	pgtest.Exec(n.t, n.url, fmt.Sprintf("INSERT INTO remit.requests (node, origin, %s) SELECT node, origin, %s FROM remit.requests ORDER BY id LIMIT 1", columns, values))
}

// requirePlain fails on a text that could control a terminal.
func requirePlain(t *testing.T, out string) {
	t.Helper()
	require.NotContains(t, out, "\x1b")
	require.NotContains(t, out, "\nforged")
}

// TestDamagedRequest: a row of the requests that no node wrote is shown by its
// number beside the others, fsck finds it, and a person deletes it.
func TestDamagedRequest(t *testing.T) {
	n := newTwoNodes(t)
	n.mustRun(4, n.ask("revert")...)
	asks := fmt.Sprintf(`'{"target":"%s","by":"x"}'`, n.txn)
	for name, row := range map[string]struct{ columns, values, why string }{
		"no text":            {"txn, body", "txn, '{'", "what it asks for"},
		"nothing asked":      {"txn, body", "txn, '{}'", "no ids"},
		"another form":       {"txn, body", `txn, '{"target":7}'`, "what it asks for"},
		"too large":          {"txn, body", `txn, convert_to('{"target":"x","by":"' || repeat('x', 70000) || '"}', 'UTF8')`, "larger than remit stores"},
		"a name that writes": {"txn, body", `convert_to(E'\x1b[2Jx\nforged', 'UTF8'), convert_to('{"target":"\u001b[2J\nforged"}', 'UTF8')`, `\x1b[2J`},
		"another txn":        {"txn, body", "'t_other', " + asks, n.txn + " does not belong to transaction t_other"},
		"no state":           {"txn, body, state", "txn, " + asks + `, E'\x1b[2J'`, "its state is"},
		"an answer":          {"txn, body, state, ended, answer", "txn, " + asks + ", 'failed', now(), '{'", "its answer"},
		"a report of others": {"txn, body, state, ended, answer", "txn, " + asks + `, 'done', now(), '{"report":{"txn":"t_other","state":"reverted"}}'`, "no report about transaction " + n.txn},
		"times without end":  {"txn, body, asked, taken, takers", "txn, '{', '-infinity', '200000-01-01', ARRAY[ARRAY['a', NULL], ARRAY['b', 'c']]", "what it asks for"},
	} {
		for _, node := range []string{"one", "two"} { // the row is for the second one, and from the first one
			if strings.Contains(row.columns, "ended") && node == "two" {
				continue // only who asked needs the answer
			}
			n.forge(row.columns, row.values)
			at := []string{"--journal", n.url, "--state", filepath.Join(n.dir, node+".st")}
			pending := func(args ...string) string {
				return n.mustRun(0, append(append([]string{"pending"}, args...), at...)...)
			}
			out := pending()
			require.Contains(t, out, "revert of "+n.txn+", asked", name)
			require.Contains(t, out, row.why, name)
			requirePlain(t, out)
			_, hint, found := strings.Cut(out, "delete it: remit ")
			require.True(t, found, out)
			hint, _, _ = strings.Cut(hint, "\n")
			number := strings.Fields(hint)[2]
			require.Contains(t, out, "damaged request "+number+", for node n_", name)
			require.Contains(t, pending("--json"), `"request":`+number+`,`, name)

			code, out := command(t, append([]string{"fsck"}, at...)...)
			require.Equal(t, 1, code, out)
			require.Contains(t, out, "request "+number+", asked of node", name)
			require.Contains(t, out, "--discard NUMBER", name)
			requirePlain(t, out)

			out = n.mustRun(0, append(strings.Fields(hint), "--journal", n.url)...)
			require.Contains(t, out, "deleted: the damaged request "+number)
			require.NotContains(t, pending(), "damaged", name)
			n.mustRun(0, append([]string{"fsck"}, at...)...)
			_, out = command(t, append(strings.Fields(hint), "--journal", n.url)...)
			require.Contains(t, out, "has no such request", name)
		}
	}
	one := []string{"--journal", n.url, "--state", filepath.Join(n.dir, "one.st")}
	number := regexp.MustCompile(`"request":(\d+)`).FindStringSubmatch(n.mustRun(0, append([]string{"pending", "--json"}, one...)...))
	code, out := command(t, append([]string{"pending", "--discard", number[1]}, one...)...)
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "is not damaged")
	n.mustRun(0, n.ask("revert", "--withdraw")...)
}

// TestForgedRequest: the node that has the files refuses a request whose
// transaction is not that of its target, and says so without escape sequences.
func TestForgedRequest(t *testing.T) {
	n := newTwoNodes(t)
	before := n.files()
	n.mustRun(4, n.ask("revert")...)
	asks := fmt.Sprintf(`'{"target":"%s","by":"x"}'`, n.txn)
	n.forge("txn, body", "'t_other', "+asks)
	n.forge("txn, body", `convert_to(E'\x1b[2Jx\nforged', 'UTF8'), `+asks[:len(asks)-2]+`,"force":true}'`)
	n.forge("txn, body, takers", `convert_to(E't_x\x1b[2J', 'UTF8'), '{}', ARRAY['a', 'b']`)
	n.mustRun(0, n.ask("revert", "--withdraw")...)
	out := n.must(6, "recover", "two")
	require.Contains(t, out, n.txn+" does not belong to transaction t_other")
	require.Contains(t, out, `\x1b[2Jx`)
	requirePlain(t, out)
	require.Equal(t, before, n.files())
	require.Equal(t, 3, strings.Count(out, "nothing was done"))
	out = n.mustRun(0, "pending", "--journal", n.url, "--state", filepath.Join(n.dir, "one.st"))
	require.Equal(t, 3, strings.Count(out, "damaged request"), out)
	requirePlain(t, out)

	// A forged report is not shown.
	n.mustRun(4, n.ask("revert")...)
	pgtest.Exec(t, n.url, `UPDATE remit.requests SET state = 'done', ended = now(), answer = convert_to('{"report":{"txn":"`+n.txn+`","state":"reverted","items":[{"call":"c_\u001b[2J\nforged","outcome":"restored","resource":"file://workspace/a.txt"}]}}', 'UTF8') WHERE state = 'asked'`)
	out = n.mustRun(1, n.ask("revert")...)
	require.Contains(t, out, "its answer is no report about transaction "+n.txn)
	require.Contains(t, out, "shows a damaged request, and how to delete it")
	requirePlain(t, out)
}
