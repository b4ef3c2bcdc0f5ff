package callview

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

func TestFilter(t *testing.T) {
	c := &revert.Call{Tool: record.ToolRef{Name: "file_write"}, Phase: revert.PhaseDenied, Denied: &record.Denied{}, Changes: []effect.Change{{Resource: "file://workspace/src/a%20b.go"}}}
	for _, f := range []Filter{{}, {Tool: "write"}, {Outcome: "denied"}, {Path: "src/a b"}, {Path: "a%20b"}, {Path: "file://workspace/src"}, {Tool: "file_", Outcome: "denied", Path: ".go"}} {
		require.True(t, f.Selects(c), "%+v", f)
	}
	for _, f := range []Filter{{Tool: "read"}, {Outcome: "done"}, {Path: "src/b"}, {Path: "workspace"}, {Tool: "write", Path: "other"}} {
		require.False(t, f.Selects(c), "%+v", f)
		require.True(t, f.Narrows())
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	began := &revert.Txn{Began: at}
	for _, f := range []Filter{{}, {From: at}, {To: at}, {From: at.Add(-1), To: at.Add(1)}} {
		require.True(t, f.SelectsTxn(began), "%+v", f)
		require.False(t, f.Narrows())
	}
	require.False(t, Filter{From: at.Add(1)}.SelectsTxn(began))
	require.False(t, Filter{To: at.Add(-1)}.SelectsTxn(began))
}

// TestFilterQuery checks that only indexed records are read, and which.
func TestFilterQuery(t *testing.T) {
	for _, tt := range []struct {
		f     Filter
		kinds []record.Kind
		about []string
	}{
		{Filter{Tool: "x", Outcome: "done"}, []record.Kind{record.KindBegun}, nil},
		{Filter{Outcome: "denied"}, []record.Kind{record.KindDenied}, nil},
		{Filter{Outcome: "invalid"}, []record.Kind{record.KindInvalid}, nil},
		{Filter{Path: `a "b`}, []record.Kind{record.KindChanged, record.KindDenied, record.KindAsked, record.KindFailed, record.KindHeld}, []string{`a \"b`, `a%20%22b`}},
	} {
		q := tt.f.Query()
		require.True(t, q.Newest)
		require.Equal(t, tt.kinds, q.Kinds, "%+v", tt.f)
		require.Equal(t, tt.about, q.About, "%+v", tt.f)
	}
}
