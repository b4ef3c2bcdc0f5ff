package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
)

// TestEntrySaysHints: an entry says what policies read of a server's tool; what is no risk is refused.
func TestEntrySaysHints(t *testing.T) {
	read := func(entry string) (config.Config, error) {
		return config.Parse("f.json", []byte(`{"mcpServers": {"a": {"command": "run"}}, "remit": {"servers": {"a": {"tools": {"set": `+entry+`}}}}}`), env)
	}
	c, err := read(`{"idempotent": true, "risk": "high", "approval": true}`)
	require.NoError(t, err)
	e := c.Servers[0].Tools["set"]
	require.True(t, e.Idempotent)
	require.Equal(t, perm.RiskHigh, e.Risk)
	require.True(t, e.Approval)
	_, err = read(`{"risk": "grave"}`)
	require.ErrorContains(t, err, "unknown risk; valid are low, medium, high")
}
