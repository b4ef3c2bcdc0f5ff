package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
)

// TestFindIDs finds IDs whose batches are in the index, and IDs that are newer
// than it.
func TestFindIDs(t *testing.T) {
	j := open(t, t.TempDir())
	defer func() { require.NoError(t, j.Close()) }()
	for i := range 1200 {
		h := record.Header{Session: "s_1", Txn: fmt.Sprintf("t_%03d", i/10), Call: fmt.Sprintf("c_%04d", i)}
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{journaltest.Entry(h, "x")}}))
	}
	for prefix, want := range map[string][]string{
		"c_0000": {"c_0000"}, "c_000": {"c_0000", "c_0001", "c_0002"}, "c_1199": {"c_1199"}, "t_00": {"t_000", "t_001", "t_002"}, "t_119": {"t_119"},
		"c_119": {"c_1190", "c_1191", "c_1192"}, "": {"c_0000", "c_0001", "c_0002"}, "s_": nil, "c_2": nil,
	} {
		found, err := journal.FindIDs(t.Context(), j, prefix, 3)
		require.NoError(t, err)
		require.Equal(t, len(want), len(found), prefix)
		require.Subset(t, want, found, prefix)
	}
	indexed, err := j.FindIDs(t.Context(), "c_0000", 3)
	require.NoError(t, err)
	require.Equal(t, []string{"c_0000"}, indexed)
}
