package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// TestOAuthConfig: what a person knows of how to log in is read, and a secret is for an issuer that is named.
func TestOAuthConfig(t *testing.T) {
	c, err := config.Parse("f.json", []byte(`{"mcpServers": {"s": {"url": "https://tools.example", "oauth": {
		"clientId": "me", "clientSecret": "${TOKEN}", "issuer": "https://login.example", "clientMetadataUrl": "https://me.example/c.json", "callbackPort": 8765, "scopes": ["a", "b"], "enabled": true}}}}`), env)
	require.NoError(t, err)
	require.Equal(t, config.OAuth{
		ClientID: "me", ClientSecret: "t0ken", Issuer: "https://login.example", MetadataURL: "https://me.example/c.json", CallbackPort: 8765, Scopes: []string{"a", "b"},
	}, c.Servers[0].OAuth)
	require.Len(t, c.Warnings, 1)
	require.Contains(t, c.Warnings[0], `"enabled" is not understood`)
	for text, want := range map[string]string{
		`{"clientId": "me", "clientSecret": "${TOKEN}"}`:                  `"issuer" is missing`,
		`{"clientSecret": "${TOKEN}", "issuer": "https://login.example"}`: `which is missing`,
		`{"callbackPort": 0}`:     "want the number of a port",
		`{"callbackPort": 65536}`: "want the number of a port",
		`{"callbackPort": 1.5}`:   "want the number of a port",
		`{"callbackPort": "80"}`:  "want the number of a port",
		`{"scopes": "a"}`:         "want an array",
		`true`:                    "want an object",
		`{"clientId": "me", "clientSecret": "${TOKEN}", "issuer": "${EMPTY:-}"}`: `"issuer" is missing`,
	} {
		_, err := config.Parse("f.json", []byte(`{"mcpServers": {"s": {"url": "https://tools.example", "oauth": `+text+`}}}`), env)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "t0ken")
	}
}
