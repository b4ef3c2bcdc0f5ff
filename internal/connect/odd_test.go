package connect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// TestEntriesTheGatewayTakes: a server whose entry the gateway could not read stays where it is. Behind the gateway it would keep
// all others from being served.
func TestEntriesTheGatewayTakes(t *testing.T) {
	const plain = `{"command":"fs"}`
	for entry, taken := range map[string]bool{
		plain: true,
		`{"command":"fs","args":["\ud83d\ude00","\u0000"],"env":{"A":"1","a":"2"}}`: true,
		`{"command":"fs","timeout":1e3,"more":{"x":[1.50]}}`:                        true,
		`{"url":"https://[::1]:8080/mcp?a=b"}`:                                      true,
		`{"url":"https://${env:A}:${env:B}/mcp"}`:                                   true,

		`{"command":"fs","env":{"A":"1","A":"2"}}`:                                          false,
		`{"command":"fs","more":[{"a":1,"a":2}]}`:                                           false,
		`{"command":"fs","args":["\ud800"]}`:                                                false,
		`{"command":"fs","deep":` + strings.Repeat("[", 62) + strings.Repeat("]", 62) + `}`: false,
		`{"command":""}`:                                       false,
		`{"command":"fs","args":"x"}`:                          false,
		`{"command":"fs","cwd":7}`:                             false,
		`{"command":"fs","n":` + strings.Repeat("9", 50) + `}`: false,
		`{"url":""}`:                                           false,
		`{"url":"localhost:3000"}`:                             false,
		`{"url":"ftp://h/x"}`:                                  false,
		`{"url":"https://"}`:                                   false,
		`{"url":"https://u:p@h/x"}`:                            false,
		`{"type":"sse","url":"//h/x"}`:                         false,
		`{"url":"https://h/%zz"}`:                              false,
	} {
		w := newTestHome(t)
		text := fmt.Sprintf(`{"mcpServers":{"good":{"command":"good"},"odd":%s}}`, entry)
		w.write(cursorFile, text)
		r := w.connect("cursor")
		c, err := config.Parse(gatewayFile, []byte(w.read(gatewayFile)), func(string) (string, bool) { return "1", true })
		require.NoError(t, err, entry)
		var names []string
		for _, s := range c.Servers {
			names = append(names, s.Name)
		}
		if taken {
			require.Equal(t, []string{"good", "odd"}, names, entry)
		} else {
			require.Equal(t, []string{"good"}, names, entry)
			why, err := json.Marshal(r.Files[0].Servers)
			require.NoError(t, err)
			require.Contains(t, string(why), `"name":"odd","scope":"user","why":"`, entry)
		}
		w.disconnect("cursor")
		require.Equal(t, map[string]string{cursorFile: text}, w.tree("home", "state"))
	}
}
