package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPolicyInput: an accepted input stays the same if it is written and read
// again. It has a purpose, a tool and an access.
func FuzzPolicyInput(f *testing.F) {
	_, sample, _ := strings.Cut(SampleInput, "<<'END'\n")
	sample = strings.TrimSuffix(sample, "END")
	f.Add([]byte(sample))
	for _, change := range [][2]string{
		{`"run"`, `"delete"`},
		{`"write"`, `"Write"`},
		{`"id": "c_1"`, `"ID": "c_1"`},
		{`"index": 0`, `"index": 1e400`},
		{`"roles": []`, `"roles": [], "roles": []`},
		{`"2026-01-02T03:04:05Z"`, `"2026-02-30T03:04:05Z"`},
		{`"calls": 0`, `"calls": 99999999999999999999`},
		{`"dynamic": false`, `"dynamic": 0`},
	} {
		f.Add([]byte(strings.Replace(sample, change[0], change[1], 1)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRequest(text)
		if err != nil {
			require.NotContains(t, err.Error(), "perm.", "no Go type is shown to people")
			return
		}
		require.NotEmpty(t, r.Access.Action)
		require.NotEmpty(t, r.Tool.Name)
		first, err := json.Marshal(r)
		require.NoError(t, err)
		again, err := parseRequest(first)
		if err != nil {
			return // some members must not be present and empty
		}
		second, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(first), string(second))
	})
}
