package mcp_test

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// decodeResult decodes what a tool of the server answers.
func decodeResult[T any](t *testing.T, structured any) (out T) {
	t.Helper()
	data, err := json.Marshal(structured)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

type txnResult struct {
	Txn, State string
	Items      []struct{ Resource, Outcome string }
	Calls      []struct{ Call, Tool, Phase string }
	Txns       []struct {
		Txn, State string
		Calls      []struct{ Call, Tool, Phase string }
	}
	HasMore bool `json:"has_more"`
}

func write(path, content string) tool.Args { return tool.Args{"path": path, "content": content} }

// TestTransaction: calls that name a transaction are kept or reverted together.
func TestTransaction(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{})
		cs := h.client(revision, nil)
		begin := func(args tool.Args) string {
			r := h.call(cs, "txn_begin", args)
			require.False(t, r.IsError, textOf(t, r))
			return decodeResult[txnResult](t, r.StructuredContent).Txn
		}
		first := begin(nil)
		r := h.call(cs, "file_write", write("a.txt", "1"), "remit.dev/txn", first)
		require.False(t, r.IsError, textOf(t, r))
		require.Equal(t, first, r.Meta["remit.dev/txn"])
		h.call(cs, "file_write", write("b.txt", "1"), "remit.dev/txn", first)
		h.call(cs, "file_write", write("alone.txt", "1"))

		preview := decodeResult[txnResult](t, h.call(cs, "txn_preview", tool.Args{"txn": first}).StructuredContent)
		require.Len(t, preview.Items, 2)
		require.Equal(t, "1", h.file("a.txt"), "a preview changes nothing")

		r = h.call(cs, "txn_revert", tool.Args{"txn": first})
		require.False(t, r.IsError, textOf(t, r))
		require.Equal(t, "reverted", decodeResult[txnResult](t, r.StructuredContent).State)
		require.Equal(t, []string{"(none)", "(none)", "1"}, []string{h.file("a.txt"), h.file("b.txt"), h.file("alone.txt")})
		r = h.call(cs, "file_write", write("a.txt", "2"), "remit.dev/txn", first)
		require.True(t, r.IsError)
		require.Contains(t, textOf(t, r), "is not open in this session")

		second := begin(nil)
		h.call(cs, "file_write", write("a.txt", "1"), "remit.dev/txn", second)
		r = h.call(cs, "txn_commit", tool.Args{"txn": second})
		require.Equal(t, "committed", decodeResult[txnResult](t, r.StructuredContent).State)
		h.call(cs, "txn_revert", tool.Args{"txn": second})
		require.Equal(t, "(none)", h.file("a.txt"), "also after it committed")
	})
}

// TestCurrentTransaction: one that is current has all calls that name none, until it ends.
func TestCurrentTransaction(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{})
		cs := h.client(revision, nil)
		r := h.call(cs, "txn_revert", nil)
		require.True(t, r.IsError)
		require.Contains(t, textOf(t, r), "no current transaction")

		txn := decodeResult[txnResult](t, h.call(cs, "txn_begin", tool.Args{"current": true}).StructuredContent).Txn
		require.True(t, h.call(cs, "txn_begin", tool.Args{"current": true}).IsError, "there is one")
		require.Equal(t, txn, h.call(cs, "file_write", write("a.txt", "1")).Meta["remit.dev/txn"])
		h.call(cs, "txn_revert", nil)
		require.Equal(t, "(none)", h.file("a.txt"))
		require.NotEqual(t, txn, h.call(cs, "file_write", write("a.txt", "1")).Meta["remit.dev/txn"])
	})
}

// TestCurrentTransactionAfterARestart: the next process goes on in the transaction that was the current one, until it ends.
func TestCurrentTransactionAfterARestart(t *testing.T) {
	state, token := t.TempDir(), ""
	var txn string
	for _, step := range []string{"begin", "go on", "after"} {
		t.Run(step, func(t *testing.T) {
			j, err := sqlite.Open(t.Context(), state)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, j.Close()) })
			h := newServerSetup(t, mcp.Options{}, agent.Journal(j))
			var s *agent.Session
			if token == "" {
				s = h.session("coder")
				token = s.Token()
			} else {
				s, err = h.rt.ResumeSession(t.Context(), token)
				require.NoError(t, err)
			}
			cs := h.clientOf(legacy, nil, s)
			read := func(r *sdk.CallToolResult) string {
				require.False(t, r.IsError, textOf(t, r))
				var answer struct{ Txn string }
				require.NoError(t, json.Unmarshal([]byte(textOf(t, r)), &answer))
				return answer.Txn
			}
			switch step {
			case "begin":
				txn = read(h.call(cs, "txn_begin", tool.Args{"current": true}))
			case "go on":
				require.Equal(t, txn, h.call(cs, "upper", tool.Args{"input": "x"}).Meta["remit.dev/txn"])
				require.True(t, h.call(cs, "txn_begin", tool.Args{"current": true}).IsError)
				require.Equal(t, txn, read(h.call(cs, "txn_commit", tool.Args{})))
			case "after":
				require.False(t, h.call(cs, "upper", tool.Args{"input": "x"}).IsError, "its client ended it")
				require.NotEqual(t, txn, h.call(cs, "upper", tool.Args{"input": "x"}).Meta["remit.dev/txn"])
			}
		})
	}
}

// TestRevertCall: a call that was one by itself is reverted by its id.
func TestRevertCall(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	cs := h.client(modern, nil)
	r := h.call(cs, "file_write", write("a.txt", "1"))
	r = h.call(cs, "txn_revert", tool.Args{"call": r.Meta["remit.dev/call"]})
	require.False(t, r.IsError, textOf(t, r))
	require.Equal(t, "(none)", h.file("a.txt"))
	r = h.call(cs, "txn_revert", tool.Args{"call": "c_x", "txn": "t_x"})
	require.Contains(t, textOf(t, r), "not both")

	r = h.call(cs, "file_write", write("b.txt", "1"))
	h.call(cs, "file_write", write("b.txt", "2"))
	r = h.call(cs, "txn_revert", tool.Args{"call": r.Meta["remit.dev/call"]})
	require.True(t, r.IsError, "a later call lies on it")
	require.Equal(t, "2", h.file("b.txt"))
}

// TestStatus: the last transactions first, in pages, and one with its calls.
func TestStatus(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	cs := h.client(modern, nil)
	var last string
	for range 25 {
		last = remitMeta(h.call(cs, "upper", tool.Args{"input": "x"}), "txn")
	}
	page := decodeResult[txnResult](t, h.call(cs, "txn_status", nil).StructuredContent)
	require.Len(t, page.Txns, 20)
	require.True(t, page.HasMore)
	require.Equal(t, last, page.Txns[0].Txn)
	require.Equal(t, "upper", page.Txns[0].Calls[0].Tool)
	page = decodeResult[txnResult](t, h.call(cs, "txn_status", tool.Args{"page": 2}).StructuredContent)
	require.Len(t, page.Txns, 5)
	require.False(t, page.HasMore)
	one := decodeResult[txnResult](t, h.call(cs, "txn_status", tool.Args{"txn": last}).StructuredContent)
	require.Equal(t, "committed", one.State)
	require.Equal(t, "done", one.Calls[0].Phase)
}

// TestOthersTransaction checks that each transaction tool responds to the ID of
// another session as if it did not exist.
func TestOthersTransaction(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{})
		theirs := h.clientOf(revision, nil, h.session("theirs"))
		mine := h.clientOf(revision, nil, h.session("mine"))
		r := h.call(theirs, "file_write", write("a.txt", "1"))
		call, done := r.Meta["remit.dev/call"], r.Meta["remit.dev/txn"]
		open := decodeResult[txnResult](t, h.call(theirs, "txn_begin", nil).StructuredContent).Txn
		for _, tt := range []struct {
			tool string
			args tool.Args
		}{
			{"txn_revert", tool.Args{"call": call}},
			{"txn_revert", tool.Args{"txn": done}},
			{"txn_revert", tool.Args{"txn": open}},
			{"txn_preview", tool.Args{"txn": done}},
			{"txn_commit", tool.Args{"txn": open}},
			{"txn_status", tool.Args{"txn": open}},
		} {
			r := h.call(mine, tt.tool, tt.args)
			require.True(t, r.IsError, tt.tool)
			require.Contains(t, textOf(t, r), "is no transaction or call of this session", tt.tool)
		}
		r = h.call(mine, "file_write", write("b.txt", "1"), "remit.dev/txn", open)
		require.True(t, r.IsError)
		none := h.call(mine, "file_write", write("b.txt", "1"), "remit.dev/txn", "t_none")
		require.Equal(t, textOf(t, none), replace(textOf(t, r), open, "t_none"), "one of somebody else is answered like none")
		require.Equal(t, []string{"1", "(none)"}, []string{h.file("a.txt"), h.file("b.txt")})
		require.False(t, h.call(theirs, "file_write", write("b.txt", "1"), "remit.dev/txn", open).IsError, "it is open still")
	})
}

// TestCallID: the same id is the same call.
func TestCallID(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	cs := h.client(modern, nil)
	first := h.call(cs, "file_write", write("a.txt", "1"), "remit.dev/call-id", "k1")
	require.False(t, first.IsError)
	again := h.call(cs, "file_write", write("a.txt", "1"), "remit.dev/call-id", "k1")
	require.Equal(t, first.Meta["remit.dev/call"], again.Meta["remit.dev/call"])
	require.Equal(t, textOf(t, first), textOf(t, again))
	other := h.call(cs, "file_write", write("a.txt", "2"), "remit.dev/call-id", "k1")
	require.Equal(t, "invalid", other.Meta["remit.dev/status"])
	require.Equal(t, "1", h.file("a.txt"))
}

// TestManyTransactions: a session cannot hold any number open.
func TestManyTransactions(t *testing.T) {
	h := newServerSetup(t, mcp.Options{MaxTxnsPerSession: 2})
	cs := h.client(modern, nil)
	txn := decodeResult[txnResult](t, h.call(cs, "txn_begin", nil).StructuredContent).Txn
	h.call(cs, "txn_begin", nil)
	r := h.call(cs, "txn_begin", nil)
	require.True(t, r.IsError)
	require.Contains(t, textOf(t, r), "as many transactions open as it may")
	h.call(cs, "txn_commit", tool.Args{"txn": txn})
	require.False(t, h.call(cs, "txn_begin", nil).IsError)
}

// TestTransactionArguments: what is no argument is refused, by its name.
func TestTransactionArguments(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	cs := h.client(modern, nil)
	for _, tt := range []struct {
		tool string
		args tool.Args
		want string
	}{
		{"txn_begin", tool.Args{"txn": "x"}, "txn"},
		{"txn_revert", tool.Args{"cascade": true}, "cascade"},
		{"txn_status", tool.Args{"page": 0}, "page"},
		{"txn_commit", tool.Args{"txn": 7}, "txn"},
	} {
		r := h.call(cs, tt.tool, tt.args)
		require.True(t, r.IsError)
		require.Contains(t, textOf(t, r), tt.want)
	}
}
