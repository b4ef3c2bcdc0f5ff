package databasetest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// many is a tool that runs several statements in one call. A statement that
// begins with ? is a query, one with ! is cancelled before it begins. Each
// result is a line.
type many struct{ kept *handle.Database }

func (m *many) tool(t *testing.T) tool.Tool {
	t.Helper()
	made, err := tool.FromSpec(tool.Spec{
		Name: "many", Description: "Run statements.", Version: "1", Confinement: tool.Handles, EffectClass: effect.Reversible, Verify: verify.Changes,
		Needs: []perm.ResourceAccess{perm.Access(perm.Read, "db://main/*"), perm.Access(perm.Write, "db://main/*"), perm.Access(perm.List, "db://main")},
		Execute: func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			var text string
			if err := json.Unmarshal(in, &text); err != nil {
				return tool.Result{}, err
			}
			db, err := handle.Open(ctx, tc, "main")
			if err != nil {
				return tool.Result{}, err
			}
			m.kept = db
			var out []string
			for line := range strings.Lines(text) {
				out = append(out, resultOf(ctx, db, strings.TrimSpace(line)))
			}
			return tool.Result{Text: strings.Join(out, "\n")}, nil
		},
	})
	require.NoError(t, err)
	return made
}

func resultOf(ctx context.Context, db *handle.Database, line string) string {
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx, line = ended, strings.TrimSpace(rest)
	}
	run := db.Execute
	if rest, ok := strings.CutPrefix(line, "?"); ok {
		run, line = db.Query, rest
	}
	r, err := run(ctx, handle.Statement{SQL: line}, handle.Page{})
	if err != nil {
		return "error: " + err.Error()
	}
	text, err := json.Marshal(r.Rows)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(text)
}

// OneCall runs several statements in one call. They see each other, and a
// failed one leaves nothing and ends nothing. They are reverted together. The
// handle is unusable after the call.
func OneCall(t *testing.T, open func(t T, schema string) *Setup) {
	w, m := open(t, tables), &many{}
	w.Start(agent.Tools(m.tool(t)))
	before, tx := w.Dump(), w.Begin()
	out, err := tx.Invoke(t.Context(), "many", strings.Join([]string{
		"?SELECT count(*) FROM t",
		"INSERT INTO t VALUES (4, 'd', 4)",
		"?SELECT count(*) FROM t",
		"INSERT INTO t VALUES (5, 'e', 5), (1, 'again', 1)",
		"?DELETE FROM t",
		"? nonsense",
		"!?SELECT 1",
		"!INSERT INTO t VALUES (6, 'f', 6)",
		"UPDATE t SET v = 'x' WHERE id = 4",
		"?SELECT v FROM t WHERE id > 3",
		"DELETE FROM t WHERE id = 4",
		"UPDATE o SET n = 2",
	}, "\n"))
	require.NoError(t, err, out.Text)
	lines := strings.Split(out.Text, "\n")
	require.Len(t, lines, 12)
	for i, want := range []string{"[[3]]", "[]", "[[4]]", "error: ", "only reads", "error: ", "context canceled", "context canceled", "[]", `[["x"]]`, "[]", "[]"} {
		require.Contains(t, lines[i], want, "statement %d", i+1)
	}
	require.Len(t, out.Changes, 1, "a row that came and went is none")
	require.Equal(t, "1|2\n", w.Rows("o"))

	_, err = m.kept.Query(t.Context(), handle.Statement{SQL: "SELECT 1"}, handle.Page{})
	require.ErrorIs(t, err, ctxperm.ErrClosed)
	_, err = m.kept.Execute(t.Context(), handle.Statement{SQL: "DELETE FROM t"}, handle.Page{})
	require.ErrorIs(t, err, ctxperm.ErrClosed)

	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, w.Dump())
}

// Ring returns statements with which a kind of database exchanges unique values
// of rows of t in one call: 1 to 2 to 3 to 1, and 4 with 5.
const Ring = "UPDATE t SET v = 'x' WHERE id = 1\nUPDATE t SET v = 'a' WHERE id = 2\nUPDATE t SET v = 'b' WHERE id = 3\nUPDATE t SET v = 'c' WHERE id = 1\n" +
	"UPDATE t SET v = 'y' WHERE id = 4\nUPDATE t SET v = 'd' WHERE id = 5\nUPDATE t SET v = 'e' WHERE id = 4"

// Swap makes rows exchange unique values within one call, for several schemas
// of a table t (id, v), and exchange them again. If another actor has taken one
// of the values meanwhile, the rows that need it stay, and the others are
// reverted.
func Swap(t *testing.T, open func(t T, schema string) *Setup, schemas ...string) {
	for _, schema := range schemas {
		w, m := open(t, schema), &many{}
		w.Start(agent.Tools(m.tool(t)))
		before, tx := w.Dump(), w.Begin()
		out, err := tx.Invoke(t.Context(), "many", Ring)
		require.NoError(t, err, out.Text)
		require.NotContains(t, out.Text, "error", schema)
		after := w.Dump()
		require.NotEqual(t, before, after)
		require.NoError(t, tx.Commit(t.Context()))
		w.Reverted(tx.ID())
		require.Equal(t, before, w.Dump(), schema)
		w.Redone(tx.ID())
		require.Equal(t, after, w.Dump(), schema)

		w.Exec("UPDATE t SET v = 'mine' WHERE id = 2; INSERT INTO t (id, v) VALUES (9, 'a')")
		rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
		require.True(t, errors.Is(err, agent.ErrPartialRevert), "%v", err)
		require.Len(t, rep.NotReverted(), 3)
		require.Equal(t, "1|c\n2|mine\n3|b\n4|d\n5|e\n9|a\n", w.Rows("(SELECT id, v FROM t) x"), schema)
	}
}
