package pipeline_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/revert"
)

func TestKeyVectors(t *testing.T) {
	raw, err := os.ReadFile("../../testdata/journal/keys.json")
	require.NoError(t, err)
	var vectors struct {
		Keys []struct {
			Txn        string `json:"txn"`
			Sequence   int    `json:"sequence"`
			ToolDigest string `json:"tool_digest"`
			Input      string `json:"input"`
			Key        string `json:"key"`
			RevertKey  string `json:"revert_key"`
		} `json:"keys"`
	}
	require.NoError(t, json.Unmarshal(raw, &vectors))
	seen := map[string]bool{}
	for _, v := range vectors.Keys {
		key := pipeline.OperationKey(v.Txn, v.Sequence, v.ToolDigest, []byte(v.Input))
		require.Equal(t, v.Key, key)
		require.Equal(t, v.RevertKey, revert.RevertKey(key))
		require.False(t, seen[key], "each call has a key of its own")
		seen[key] = true
	}
	require.Len(t, seen, 5)
}
