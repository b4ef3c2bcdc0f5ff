package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// gated is a journal that does something before the first savepoint is written, and notes what is durable.
type gated struct {
	journal.Journal
	before   atomic.Pointer[func()]
	mu       sync.Mutex // never held across a wait
	messages []string
}

func (g *gated) Append(ctx context.Context, b journal.Batch) error {
	marks := slices.ContainsFunc(b.Entries, func(e record.Entry) bool { return e.Header.Kind == record.KindSavepoint })
	if marks {
		if before := g.before.Swap(nil); before != nil {
			(*before)()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if marks {
		g.messages = append(g.messages, "mark")
	}
	if b.Durable {
		g.messages = append(g.messages, "durable")
	}
	return g.Journal.Append(ctx, b)
}

func began(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	require.False(t, r.IsError, textOf(t, r))
	return decodeResult[txnResult](t, r.StructuredContent).Txn
}

// TestCurrentTransactionAmongMany: a session that others drive out of memory while it begins its current transaction has its
// calls in that, whichever of its requests began first; and no second one can be begun beside it.
func TestCurrentTransactionAmongMany(t *testing.T) {
	j := &gated{Journal: journal.Memory()}
	h := newServerSetup(t, mcp.Options{MaxSessions: 1, MaxTxnsPerSession: 2}, agent.Journal(j))
	url := h.serve(mcp.HTTPOptions{})
	mine, other := h.session("coder").Token(), h.session("other").Token()
	call := func(token, name, args string) *sdk.CallToolResult {
		res, err := http.DefaultClient.Do(modernCall(t, url, token, name, args))
		if err != nil {
			t.Error(err)
			return &sdk.CallToolResult{IsError: true}
		}
		var answer struct{ Result *sdk.CallToolResult }
		body, err := io.ReadAll(res.Body)
		if at := bytes.IndexByte(body, '{'); err == nil && at >= 0 { // an event, or the message itself
			err = json.NewDecoder(bytes.NewReader(body[at:])).Decode(&answer)
		}
		if err = errors.Join(err, res.Body.Close()); err != nil || answer.Result == nil {
			t.Errorf("%d %s %v", res.StatusCode, body, err)
			return &sdk.CallToolResult{IsError: true}
		}
		return answer.Result
	}
	do := func() *sdk.CallToolResult { return call(mine, "upper", `{"input":"x"}`) }
	driveOut := func() { call(other, "upper", `{"input":"x"}`) }
	before := func() { // of another goroutine
		driveOut()
		if do().IsError {
			t.Error("nobody was told of a transaction yet")
		}
		driveOut()
		if r := call(mine, "txn_begin", `{"current":true}`); !r.IsError {
			t.Error("one is being begun already")
		}
		driveOut()
	}
	j.before.Store(&before)
	txn := began(t, call(mine, "txn_begin", `{"current":true}`))
	require.Equal(t, txn, do().Meta["remit.dev/txn"])
	driveOut()
	require.Equal(t, txn, do().Meta["remit.dev/txn"])
	began(t, call(mine, "txn_begin", `{}`))
	driveOut()
	require.True(t, call(mine, "txn_begin", `{}`).IsError, "it has as many open as it may")
	require.Equal(t, txn, began(t, call(mine, "txn_commit", `{}`)))
	driveOut()
	r := do()
	require.False(t, r.IsError)
	require.NotEqual(t, txn, r.Meta["remit.dev/txn"])
}

// TestCurrentTransactionIsDurable checks that the mark of the current
// transaction is durable before the client gets its answer. It therefore
// survives a power cut.
func TestCurrentTransactionIsDurable(t *testing.T) {
	j := &gated{Journal: journal.Memory()}
	h := newServerSetup(t, mcp.Options{}, agent.Journal(j))
	began(t, h.call(h.client(modern, nil), "txn_begin", tool.Args{"current": true}))
	at := slices.Index(j.messages, "mark")
	require.GreaterOrEqual(t, at, 0)
	require.Contains(t, j.messages[at:], "durable")
}

// TestCurrentTransactionAmongSavepoints: however many others stand after its mark, it is found.
func TestCurrentTransactionAmongSavepoints(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	s := h.session("coder")
	txn := began(t, h.call(h.clientOf(modern, nil, s), "txn_begin", tool.Args{"current": true}))
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	for i := range 100 {
		require.NoError(t, tx.Savepoint(t.Context(), fmt.Sprint(i)))
	}
	h.srv, err = mcp.New(h.rt, mcp.Options{})
	require.NoError(t, err)
	require.Equal(t, txn, h.call(h.clientOf(modern, nil, s), "upper", tool.Args{"input": "x"}).Meta["remit.dev/txn"])
}

// requireEndReported checks the responses to a client after another caller reverted
// its current transaction. The server runs no call of the client until the
// client asks for the state of that transaction.
func requireEndReported(t *testing.T, h *serverSetup, cs *sdk.ClientSession, txn string) {
	t.Helper()
	for _, r := range []*sdk.CallToolResult{
		h.call(cs, "file_write", write("after.txt", "1")), // of several that a client sends at once, none
		h.call(cs, "file_write", write("after.txt", "2")),
		h.call(cs, "txn_begin", nil),
		h.call(cs, "txn_begin", tool.Args{"current": true}),
		h.call(cs, "txn_commit", nil),
		h.call(cs, "txn_revert", nil),
	} {
		require.True(t, r.IsError)
		require.Contains(t, textOf(t, r), txn)
		require.Contains(t, textOf(t, r), "is not open")
	}
	h.call(cs, "txn_status", nil)
	require.True(t, h.call(cs, "upper", tool.Args{"input": "x"}).IsError, "a list is no answer about it")
	require.Equal(t, "(none)", h.file("after.txt"))
	require.Equal(t, "reverted", decodeResult[txnResult](t, h.call(cs, "txn_status", tool.Args{"txn": txn}).StructuredContent).State)
	r := h.call(cs, "file_write", write("after.txt", "1"))
	require.False(t, r.IsError, textOf(t, r))
	require.NotEqual(t, txn, r.Meta["remit.dev/txn"])
}

// TestCurrentTransactionThatSomebodyEnds: beside a server that runs, or while there is none.
func TestCurrentTransactionThatSomebodyEnds(t *testing.T) {
	t.Run("beside", func(t *testing.T) {
		h := newServerSetup(t, mcp.Options{})
		cs := h.client(modern, nil)
		txn := began(t, h.call(cs, "txn_begin", tool.Args{"current": true}))
		h.call(cs, "file_write", write("a.txt", "1"))
		_, err := h.rt.Revert(t.Context(), txn, revert.Options{})
		require.NoError(t, err)
		require.Equal(t, "(none)", h.file("a.txt"))
		requireEndReported(t, h, cs, txn)
	})
	t.Run("meanwhile", func(t *testing.T) {
		state := t.TempDir()
		var txn, token string
		life := func(fn func(h *serverSetup)) {
			j, err := sqlite.Open(t.Context(), state)
			require.NoError(t, err)
			defer func() { require.NoError(t, j.Close()) }()
			h := newServerSetup(t, mcp.Options{}, agent.Journal(j))
			fn(h)
		}
		life(func(h *serverSetup) {
			s := h.session("coder")
			token = s.Token()
			txn = began(t, h.call(h.clientOf(legacy, nil, s), "txn_begin", tool.Args{"current": true}))
		})
		life(func(h *serverSetup) {
			_, err := h.rt.Revert(t.Context(), txn, revert.Options{})
			require.NoError(t, err)
		})
		life(func(h *serverSetup) {
			s, err := h.rt.ResumeSession(t.Context(), token)
			require.NoError(t, err)
			require.True(t, h.call(h.clientOf(modern, nil, s), "txn_begin", nil).IsError, "it knows from the journal")
			requireEndReported(t, h, h.clientOf(modern, nil, s), txn)
		})
	})
}
