package callview_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// TestWithoutSensitive: the JSON of a call has no sensitive value in an input
// or an inverse. The call itself keeps them.
func TestWithoutSensitive(t *testing.T) {
	input := json.RawMessage(`{"password":"hunter2","user":"a"}`)
	change := effect.Change{Resource: "http://a", Inverse: json.RawMessage(`{"body":"hunter2"}`)}
	undo := &revert.Reversal{Reverting: record.Reverting{Steps: []effect.Step{{Change: change}}}, Changes: []effect.Change{change}}
	started := record.Started{Input: input, InputDigest: "sha256:of-it"}
	c := &revert.Call{
		Started: &started, Held: &record.Held{Started: started}, Denied: &record.Denied{Input: input, InputDigest: "sha256:of-it"},
		Asked: &record.Asked{Input: input, InputDigest: "sha256:of-it"}, Changes: []effect.Change{change}, Reversal: undo, Redo: undo,
	}
	text, err := json.Marshal(callview.WithoutSensitive(c, []string{"password"}))
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	require.NotContains(t, string(text), "sha256:of-it", "a digest of a short value tells the value")
	require.Contains(t, string(text), `"user":"a"`)

	whole, err := json.Marshal(callview.WithoutSensitive(c, nil))
	require.NoError(t, err)
	require.Contains(t, string(whole), `"input_digest":"sha256:of-it"`)
	require.Equal(t, input, c.Started.Input)
	require.NotNil(t, c.Changes[0].Inverse)
	require.NotNil(t, undo.Reverting.Steps[0].Change.Inverse)
}
