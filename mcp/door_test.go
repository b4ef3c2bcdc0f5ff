package mcp_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
)

// bare sends a request as it is written, since clients mend some of them, and returns its status.
func bare(t *testing.T, url, head string) (status string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = fmt.Fprintf(c, "GET /mcp HTTP/1.1\r\nConnection: close\r\n%s\r\n\r\n", head)
	require.NoError(t, err)
	line := make([]byte, 12)
	_, err = c.Read(line)
	require.NoError(t, err)
	return string(line[9:])
}

// TestHostAsItIsWritten checks that the server rejects a malformed Host header.
// A lenient parser could read some of them as a loopback name.
func TestHostAsItIsWritten(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	url := h.serve(mcp.HTTPOptions{Hosts: []string{"remit.example"}})
	for host, code := range map[string]string{
		"localhost": "401", "LOCALHOST:1": "401", "127.0.0.1:65535": "401", "[::1]": "401", "[::1]:80": "401", "remit.example:443": "401",
		"[::1": "403", "::1": "403", "[::1]x": "403", "[::1]x:80": "403", "[127.0.0.1]": "403", "[localhost]:80": "403", "127.0.0.1:99999": "403", "127.0.0.1:0": "403", "127.0.0.1:": "403",
		"localhost:x": "403", "localhost:-1": "403", "localhost:+1": "403", "localhost:1:2": "403", "[::1]:1:2": "403", ":80": "403", "": "403", "[]": "403", "[]:80": "403",
	} {
		require.Equal(t, code, bare(t, url, "Host: "+host), "%q", host)
	}
}

// TestSeveralOrigins: a request that says several things of the page that it is of, is of none that may call.
func TestSeveralOrigins(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	url := h.serve(mcp.HTTPOptions{Origins: []string{"https://page.example"}})
	for head, code := range map[string]string{
		"Origin: https://page.example":                                 "401",
		"Origin: https://page.example\r\nOrigin: https://evil.example": "403",
		"Origin: https://page.example\r\nOrigin: https://page.example": "403",
		"Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site":    "403",
	} {
		require.Equal(t, code, bare(t, url, "Host: localhost\r\n"+head), "%q", head)
	}
}

// TestDoubledMembers: a request whose envelope two readers could read in two ways is refused, whichever way it goes. What its arguments hold
// twice is refused by the call, and other members may be as they like.
func TestDoubledMembers(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	url := h.serve(mcp.HTTPOptions{})
	token := h.session("coder").Token()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	good := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upper","arguments":{"input":"a"},` + meta + `}}`
	with := func(old, now string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, now, 1)
	}
	for _, tt := range []struct {
		name, body, member string
	}{
		{"as it is", good, ""},
		{"another member", with(`"id":1`, `"id":1,"more":{"a":1,"a":2}`), ""},
		{"metadata that differ in case", with(`"_meta":{`, `"_meta":{"a":1,"A":{"b":[{"c":1}]},`), ""},
		{"id", with(`"id":1`, `"id":1,"id":2`), "id"},
		{"method", with(`"method":"tools/call"`, `"method":"tools/list","method":"tools/call"`), "method"},
		{"method in capitals", with(`"method":"tools/call"`, `"METHOD":"tools/list","method":"tools/call"`), "method"},
		{"an escape", with(`"method":"tools/call"`, `"m\u0065thod":"tools/list","method":"tools/call"`), "method"},
		{"params", with(`"params":{`, `"params":{"name":"file_delete"},"params":{`), "params"},
		{"name", with(`"name":"upper"`, `"name":"file_delete","name":"upper"`), "name"},
		{"arguments", with(`"arguments":{`, `"arguments":{},"Arguments":{`), "Arguments"},
		{"_meta", with(`"_meta":{`, `"_meta":{},"_meta":{`), "_meta"},
		{"of _meta", with(`"_meta":{`, `"_meta":{"remit.dev/txn":"a","remit.dev/txn":"b",`), "remit.dev/txn"},
		{"inside _meta", with(`clientCapabilities":{}`, `clientCapabilities":{"a":{"b":1,"b":2}}`), "b"},
		{"in a list", `[` + good + `,` + with(`"id":1`, `"id":1,"id":2`) + `]`, "id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, headers := range [][]string{
				{"MCP-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "upper"},
				{"MCP-Protocol-Version", legacy},
			} {
				res, body := send(t, post(t, url, token, tt.body, headers...))
				if tt.member == "" {
					require.NotContains(t, body, "the request has two members")
					continue
				}
				require.Equal(t, http.StatusBadRequest, res.StatusCode, body)
				require.Contains(t, body, fmt.Sprintf(`the request has two members \"%s\"`, tt.member))
				require.Contains(t, body, "-32600")
			}
		})
	}
}

// TestEndedSession: the token of a session whose grant was revoked, here or by another process, or has expired, is not valid any more; HTTP
// says so, and why.
func TestEndedSession(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	url := h.serve(mcp.HTTPOptions{})
	for name, tt := range map[string]struct {
		how []agent.SessionOption
		end func(s *agent.Session)
		why string
	}{
		"revoked": {nil, func(s *agent.Session) { require.NoError(t, h.rt.Revoke(t.Context(), s.ID(), "ana", "lost laptop")) }, "was revoked by ana"},
		"expired": {[]agent.SessionOption{agent.Expires(time.Now().Add(-time.Hour))}, func(*agent.Session) {}, "expired at"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := h.rt.Session(t.Context(), perm.Principal{ID: "coder"}, tt.how...)
			require.NoError(t, err)
			call := func() *http.Request { return modernCall(t, url, s.Token(), "upper", `{"input":"a"}`) }
			if tt.how == nil {
				res, body := send(t, call())
				require.Equal(t, http.StatusOK, res.StatusCode, body)
			}
			tt.end(s)
			for _, req := range []*http.Request{call(), post(t, url, s.Token(), initialize)} {
				res, body := send(t, req)
				require.Equal(t, http.StatusUnauthorized, res.StatusCode, body)
				require.Equal(t, `Bearer error="invalid_token", error_description="the grant of the session has ended"`, res.Header.Get("WWW-Authenticate"))
				require.Contains(t, body, tt.why)
			}
		})
	}
}
