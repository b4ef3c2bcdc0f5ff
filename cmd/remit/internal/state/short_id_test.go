package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
)

func TestFullID(t *testing.T) {
	j := journal.Memory()
	for _, call := range []string{"c_b2ejvz6zgbyt", "c_b2ejvz7zgbyt", "c_b2f0000000000", "c_short", "c_shorter"} {
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{journaltest.Entry(record.Header{Session: "s_1", Txn: "t_b2ejvz6zgbyt", Call: call}, "x")}}))
	}
	for short, want := range map[string]string{
		"c_b2f": "c_b2f0000000000", "c_b2ejvz6": "c_b2ejvz6zgbyt", "t_b": "t_b2ejvz6zgbyt", "c_b2ejvz6zgbyt": "c_b2ejvz6zgbyt",
		"c_short": "c_short", "c_z": "c_z", "t_": "t_", "prompt": "prompt", "c_B2": "c_B2", "s_1": "s_1", "": "",
	} {
		got, err := state.FullID(t.Context(), j, short)
		require.NoError(t, err, short)
		require.Equal(t, want, got, short)
	}
	_, err := state.FullID(t.Context(), j, "c_b2ej")
	var p *cli.Problem
	require.ErrorAs(t, err, &p)
	require.Equal(t, "several IDs begin with c_b2ej", p.What)
	require.Equal(t, "give more of the ID: c_b2ejvz6zgbyt, c_b2ejvz7zgbyt", p.Fix)
}
