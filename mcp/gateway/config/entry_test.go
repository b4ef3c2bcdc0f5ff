package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
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

// TestEntrySaysRoles: an entry says what arguments do and which fields are
// trusted; what is no role and no pointer is refused at its place.
func TestEntrySaysRoles(t *testing.T) {
	read := func(entry string) (config.Entry, error) {
		c, err := config.Parse("f.json", []byte("{\"mcpServers\": {\"a\": {\"command\": \"run\"}}, \"remit\": {\"servers\": {\"a\": {\"tools\": {\"set\":\n"+entry+`}}}}}`), env)
		if err != nil {
			return config.Entry{}, err
		}
		return c.Servers[0].Tools["set"], nil
	}
	e, err := read(`{"roles": {"/to/*": "authority", "/body": "content", "/page": "selector", "": "content"}, "trustedFields": ["/id", "/items/*/id"]}`)
	require.NoError(t, err)
	require.Equal(t, provenance.Roles{"/to/*": provenance.Authority, "/body": provenance.Payload, "/page": provenance.Selector, "": provenance.Payload}, e.Roles)
	require.Equal(t, []string{"/id", "/items/*/id"}, e.TrustedFields)
	for entry, want := range map[string]string{
		`{"roles": {"/to": "recipient"}}`: `f.json:2:19: unknown role; valid are authority, content, selector`,
		`{"roles": {"/to": 1}}`:           `f.json:2:19: "/to" is a number, want a string`,
		`{"roles": {"to": "content"}}`:    `f.json:2:12: want a pointer to an argument, such as /to or /to/*: each step of it begins with "/"`,
		`{"roles": ["/to"]}`:              `"roles" is an array, want an object`,
		`{"trustedFields": ["id"]}`:       `f.json:2:20: want a pointer to a field, such as /id or /items/*/id: each step of it begins with "/"`,
		`{"trustedFields": [""]}`:         `want a pointer to a field`,
		`{"trustedFields": "/id"}`:        `"trustedFields" is a string, want an array`,
		`{"trusted_fields": []}`:          `unknown member "trusted_fields"; did you mean "trustedFields"?`,
	} {
		_, err := read(entry)
		require.ErrorContains(t, err, want, entry)
	}
}
