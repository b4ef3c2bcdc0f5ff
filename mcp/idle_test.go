package mcp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp"
)

// TestHTTPIdle: a connection of an older revision whose client goes without a word is kept for half an hour after it last said
// something, and then nothing of it is left; those of one session are no more than there may be meanwhile.
func TestHTTPIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the test has no outside process to wait for; a goroutine that does not end fails it
		h := newServerSetup(t, mcp.Options{})
		handler, err := h.srv.Handler(mcp.HTTPOptions{})
		require.NoError(t, err)
		token := h.session("coder").Token()
		ask := func(body, conn string) (int, string) {
			req := post(t, "http://localhost/mcp", token, body)
			if conn != "" {
				req.Header.Set("Mcp-Session-Id", conn)
				req.Header.Set("MCP-Protocol-Version", legacy)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			res := w.Result()
			_, err := io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			return res.StatusCode, res.Header.Get("Mcp-Session-Id")
		}
		const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
		var all []string
		for range 40 {
			code, id := ask(initialize, "")
			require.Equal(t, http.StatusOK, code)
			all = append(all, id)
		}
		synctest.Wait()
		kept := 0
		for _, id := range all {
			if code, _ := ask(list, id); code == http.StatusOK {
				kept++
			}
		}
		require.Equal(t, 16, kept, "of one session")
		last := all[len(all)-1]
		for range 3 {
			time.Sleep(29 * time.Minute)
			code, _ := ask(list, last)
			require.Equal(t, http.StatusOK, code, "it said something in time")
		}
		code, _ := ask(list, all[len(all)-2])
		require.Equal(t, http.StatusNotFound, code, "it did not")
		time.Sleep(31 * time.Minute)
		code, _ = ask(list, last)
		require.Equal(t, http.StatusNotFound, code)
	})
}
