package process

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
)

// TestRestrictions: the answer of a program that failed names each rule of the
// sandbox that the program met. The answer of one that succeeded does not.
func TestRestrictions(t *testing.T) {
	met := []handle.Restriction{{Rule: "link", Text: "link of \"a\": has a number of its own; copy it"}}
	for _, tt := range []struct {
		name string
		r    handle.Result
		text string
	}{
		{"success", handle.Result{Restrictions: met}, ""},
		{"exit code", handle.Result{Code: 1, Restrictions: met}, "\n[exit code 1]\n[sandbox: link of \"a\": has a number of its own; copy it]"},
		{"signal", handle.Result{Code: -1, Signal: "killed", Restrictions: met}, "\n[it was ended by a signal: killed]\n[sandbox: link of \"a\": has a number of its own; copy it]"},
		{"nothing met", handle.Result{Code: 1}, "\n[exit code 1]"},
	} {
		require.Equal(t, tt.text, resultText(tt.r), tt.name)
		raw, err := canon.Marshal(answer(tt.r))
		require.NoError(t, err)
		var out struct{ Restrictions []handle.Restriction }
		require.NoError(t, json.Unmarshal(raw, &out))
		require.Equal(t, tt.text != "" && tt.r.Restrictions != nil, len(out.Restrictions) == 1, tt.name)
	}
}
