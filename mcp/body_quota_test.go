package mcp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/tool"
)

// TestHTTPLargeBodies: large requests have a bound in all and one for each session. Who is over it waits for a while, and is then
// told; small requests and other sessions come through.
func TestHTTPLargeBodies(t *testing.T) {
	runs, release := make(chan struct{}, 4), make(chan struct{})
	waits, err := tool.Create("waits", "", func(context.Context, string) (string, error) {
		runs <- struct{}{}
		<-release
		return "", nil
	}, tool.Pure())
	require.NoError(t, err)
	h := newServerSetup(t, mcp.Options{}, agent.Tools(waits))
	const body = 256 << 10
	url := h.serve(mcp.HTTPOptions{MaxBody: body, MaxBufferedBodies: 3 * body, ReadTimeout: 50 * time.Millisecond})
	first, second := h.session("first").Token(), h.session("second").Token()
	large := `{"input":"` + strings.Repeat("x", body-1000) + `"}`
	chunked := func(req *http.Request) *http.Request {
		req.ContentLength = -1
		return req
	}
	codes := make(chan int, 3)
	begin := func(req *http.Request) {
		go func() {
			code, _, _ := arrive(t, req)
			codes <- code
		}()
		<-runs
	}
	begin(modernCall(t, url, first, "waits", large))
	begin(chunked(modernCall(t, url, first, "waits", large)))
	code, header, said := arrive(t, modernCall(t, url, first, "upper", large))
	require.Equal(t, 503, code, "it has two already: %s", said)
	require.Equal(t, "1", header.Get("Retry-After"))
	begin(modernCall(t, url, second, "waits", large))
	code, _, said = arrive(t, chunked(modernCall(t, url, second, "upper", large)))
	require.Equal(t, 503, code, "there are three in all: %s", said)
	code, _, said = arrive(t, modernCall(t, url, first, "upper", `{"input":"`+strings.Repeat("x", 60<<10)+`"}`))
	require.Equal(t, 200, code, said)
	close(release)
	require.Equal(t, []int{200, 200, 200}, []int{<-codes, <-codes, <-codes})
	for range 4 { // all room is there again, soon after an answer, also after some that were too large
		code, _, said = arrive(t, chunked(modernCall(t, url, first, "upper", large+strings.Repeat(" ", 2000))), 503)
		require.Equal(t, 413, code, said)
		code, _, said = arrive(t, modernCall(t, url, second, "upper", large), 503)
		require.Equal(t, 200, code, said)
	}
}
