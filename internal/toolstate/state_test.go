package toolstate_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/toolstate"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// TestPlanGoesByVersions checks that a state is reverted from the version that
// the call left. It is already reverted at the version that the call found, and
// any other version is left unchanged. The same holds when the step is applied.
func TestPlanGoesByVersions(t *testing.T) {
	for name, c := range map[string]struct {
		now, later string // at the plan, and at the step; empty: no state
		plan, does effect.Outcome
	}{
		"as it left it":           {"2", "2", effect.Restored, effect.Restored},
		"as it found it":          {"1", "1", effect.Already, ""},
		"of somebody else":        {"3", "3", effect.Conflict, ""},
		"erased":                  {"", "", effect.Conflict, ""},
		"went back meanwhile":     {"2", "1", effect.Restored, effect.Already},
		"somebody came meanwhile": {"2", "3", effect.Restored, effect.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, j := t.Context(), journal.Memory()
			h := hosttest.New(1)
			rec := revert.NewRecorder(j, h, "s_1").In("t_1")
			require.NoError(t, rec.Write(ctx, revert.Write{
				Records: []revert.CallRecord{{Body: &record.Begun{Owner: j.Owner()}}},
				Take:    journal.OwnerChange{To: journal.Ownership{Txn: "t_1", Owner: j.Owner()}},
			}))
			holds := func(content string) record.State {
				if content == "" {
					return record.State{Session: "s_1", Tool: "count", Version: effect.Absent}
				}
				s, blob, err := toolstate.Keep(ctx, j, "s_1", "count", json.RawMessage(content))
				require.NoError(t, err)
				s.Of = record.CallRef{Txn: "t_1", Call: "c_1"}
				require.NoError(t, rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Call: s.ID(h), Body: &s}}, Blobs: []journal.Blob{blob}}))
				return s
			}
			left := func(content string) {
				if s := holds(content); content == "" {
					require.NoError(t, rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Call: s.ID(h), Body: &s}}}))
				}
			}
			found, did := holds("1"), holds("2")
			change, err := toolstate.Change(found, did)
			require.NoError(t, err)
			change.N = 1

			left(c.now)
			steps, _, err := toolstate.Scheme(j).Plan(ctx, []effect.Change{change}, j)
			require.NoError(t, err)
			require.Len(t, steps, 1)
			require.Equal(t, c.plan, steps[0].Plan)
			if c.does == "" {
				return
			}
			left(c.later)
			require.Equal(t, c.does, toolstate.Scheme(j).Apply(ctx, steps[0], j).Outcome)
		})
	}
}
