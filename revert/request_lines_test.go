package revert

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/effect"
)

// A report that goes to another node has no lines of files of this one: they
// need not be on the journal.
func TestRequestHasNoLinesOfFiles(t *testing.T) {
	item := ResourceResult{Call: "c", Result: effect.Result{Outcome: effect.Conflict}, Overlaps: []effect.Overlap{{Line: 1, Now: "a secret line"}}}
	rep := &Report{Txn: "t", Items: []ResourceResult{item}}
	text, err := Request{Report: rep}.fit(1 << 20)
	require.NoError(t, err)
	require.NotContains(t, string(text), "a secret line")
	require.Contains(t, string(text), `"conflict"`)
	require.Len(t, rep.Items[0].Overlaps, 1, "the report itself is as it was")
}
