package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

const asksForSend = "package remit\nask contains \"it leaves the house\" if input.tool.name == \"send\"\nallow contains \"the rest\" if input.tool.name != \"send\"\nhide contains \"not for you\" if input.tool.name == \"secret\"\ndeny contains \"not for you\" if input.tool.name == \"secret\"\n"

// office is a house in which sending is asked about.
type office struct {
	*serverSetup
	sent atomic.Int64
}

func newOffice(t *testing.T, opts mcp.Options, more ...agent.Option) *office {
	o := &office{}
	engine, err := rego.New(rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": asksForSend}})
	require.NoError(t, err)
	send, err := tool.Create("send", "Send a letter.", func(context.Context, string) (string, error) {
		o.sent.Add(1)
		return "sent", nil
	}, tool.Effect(effect.Pivot))
	require.NoError(t, err)
	secret, err := tool.Create("secret", "", func(context.Context, string) (string, error) { return "", nil }, tool.Pure())
	require.NoError(t, err)
	o.serverSetup = newServerSetup(t, opts, append([]agent.Option{agent.SuspendForApproval(), agent.Policy(engine), agent.Tools(send, secret)}, more...)...)
	return o
}

var letterInput = tool.Args{"input": "Dear customer"}

// answers is a client whose person says the same each time, and notes what it was asked.
func answers(asked *[]string, r *sdk.ElicitResult) *sdk.ClientOptions {
	return &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			*asked = append(*asked, req.Params.Message)
			return r, nil
		},
	}
}

func yes() *sdk.ElicitResult {
	return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true, "why": "fine"}}
}

// TestElicit: the person at the client is asked, in the way of each revision, and what they say counts.
func TestElicit(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		for _, tt := range []struct {
			name   string
			said   *sdk.ElicitResult
			status string
			sent   int64
		}{
			{"yes", yes(), "done", 1},
			{"no", &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": false}}, "denied", 0},
			{"declined", &sdk.ElicitResult{Action: "decline"}, "denied", 0},
			{"not said", &sdk.ElicitResult{Action: "cancel"}, "pending", 0},
		} {
			t.Run(tt.name, func(t *testing.T) {
				o := newOffice(t, mcp.Options{})
				var asked []string
				cs := o.client(revision, answers(&asked, tt.said))
				r := o.call(cs, "send", letterInput)
				require.Equal(t, tt.status, r.Meta["remit.dev/status"], textOf(t, r))
				require.Equal(t, tt.status != "done", r.IsError)
				require.Equal(t, tt.sent, o.sent.Load())
				require.Len(t, asked, 1)
				for _, part := range []string{"asks to run send", "call tool://send", "it leaves the house", "Dear customer"} {
					require.Contains(t, asked[0], part)
				}
				_, c, err := revert.LoadCall(t.Context(), o.rt.Journal(), remitMeta(r, "call"))
				require.NoError(t, err)
				if tt.status == "pending" {
					require.Nil(t, c.Answered)
					return
				}
				require.Equal(t, "person at test", c.Answered.By)
			})
		}
	})
}

// TestWaitElsewhere checks that a call waits if the server cannot ask at the
// client. A repeated call does not create a second approval request. The call
// continues after an approver has answered.
func TestWaitElsewhere(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		for _, opts := range []struct {
			name string
			of   mcp.Options
			by   *sdk.ClientOptions
		}{
			{"the client cannot ask", mcp.Options{}, nil},
			{"it is not to", mcp.Options{OnAsk: mcp.ApproveOutOfBand}, answers(&[]string{}, yes())},
		} {
			t.Run(opts.name, func(t *testing.T) {
				o := newOffice(t, opts.of)
				cs := o.client(revision, opts.by)
				r := o.call(cs, "send", letterInput)
				require.True(t, r.IsError)
				require.Equal(t, "pending", r.Meta["remit.dev/status"])
				id := remitMeta(r, "call")
				require.Contains(t, outcome(t, r).Error.Fix, "a person answers it")
				all, err := json.Marshal(r)
				require.NoError(t, err)
				require.NotContains(t, string(all), "remit approve", "a model is not told how to approve")

				require.Equal(t, id, o.call(cs, "send", letterInput).Meta["remit.dev/call"], "it waits, and is not asked about twice")
				other := o.call(cs, "send", tool.Args{"input": "another"})
				require.NotEqual(t, id, other.Meta["remit.dev/call"])

				require.NoError(t, o.rt.Answer(t.Context(), agent.Answer{Call: id, Approved: true, By: "boss"}))
				r = o.call(cs, "send", letterInput)
				require.Equal(t, "done", r.Meta["remit.dev/status"], textOf(t, r))
				require.Equal(t, id, r.Meta["remit.dev/call"])
				require.EqualValues(t, 1, o.sent.Load())
				stands, err := revert.Load(t.Context(), o.rt.Journal(), remitMeta(r, "txn"))
				require.NoError(t, err)
				require.Equal(t, revert.TxnCommitted, stands.State(), "its transaction was its own")
				require.NotEqual(t, id, o.call(cs, "send", letterInput).Meta["remit.dev/call"], "a new call is a new question")
			})
		}
	})
}

// TestWaitInTransaction: a call that waits in a transaction leaves that open.
func TestWaitInTransaction(t *testing.T) {
	o := newOffice(t, mcp.Options{})
	cs := o.client(modern, nil)
	txn := decodeResult[txnResult](t, o.call(cs, "txn_begin", nil).StructuredContent).Txn
	id := remitMeta(o.call(cs, "send", letterInput, "remit.dev/txn", txn), "call")
	require.NotEqual(t, id, o.call(cs, "send", letterInput).Meta["remit.dev/call"], "without the transaction it is another call")
	require.NoError(t, o.rt.Answer(t.Context(), agent.Answer{Call: id, Approved: true, By: "boss"}))
	require.Equal(t, "done", o.call(cs, "send", letterInput, "remit.dev/txn", txn).Meta["remit.dev/status"])
	require.Equal(t, "open", decodeResult[txnResult](t, o.call(cs, "txn_status", tool.Args{"txn": txn}).StructuredContent).State)
}

// TestWaitWithCallID: the caller's own id finds the call that waits.
func TestWaitWithCallID(t *testing.T) {
	o := newOffice(t, mcp.Options{})
	cs := o.client(modern, nil)
	id := remitMeta(o.call(cs, "send", letterInput, "remit.dev/call-id", "k"), "call")
	require.Equal(t, id, o.call(cs, "send", letterInput, "remit.dev/call-id", "k").Meta["remit.dev/call"])
	require.NoError(t, o.rt.Answer(t.Context(), agent.Answer{Call: id, Approved: true, By: "boss"}))
	r := o.call(cs, "send", letterInput, "remit.dev/call-id", "k")
	require.Equal(t, "done", r.Meta["remit.dev/status"])
	require.Equal(t, "done", o.call(cs, "send", letterInput, "remit.dev/call-id", "k").Meta["remit.dev/status"])
	require.EqualValues(t, 1, o.sent.Load())
}

// TestWaitAfterRestart: a server that is new finds what waits.
func TestWaitAfterRestart(t *testing.T) {
	o := newOffice(t, mcp.Options{})
	in := o.session("coder")
	id := remitMeta(o.call(o.clientOf(modern, nil, in), "send", letterInput), "call")
	var err error
	o.srv, err = mcp.New(o.rt, mcp.Options{})
	require.NoError(t, err)
	require.NoError(t, o.rt.Answer(t.Context(), agent.Answer{Call: id, Approved: true, By: "boss"}))
	r := o.call(o.clientOf(modern, nil, in), "send", letterInput)
	require.Equal(t, id, r.Meta["remit.dev/call"])
	require.Equal(t, "done", r.Meta["remit.dev/status"])
}

// TestHidden: a call of a tool that is hidden is answered as one of a tool that is not there.
func TestHidden(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		o := newOffice(t, mcp.Options{})
		cs := o.client(revision, nil)
		list, err := cs.ListTools(t.Context(), nil)
		require.NoError(t, err)
		for _, l := range list.Tools {
			require.NotEqual(t, "secret", l.Name)
		}
		_, hidden := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "secret", Arguments: tool.Args{"input": "x"}})
		_, none := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "nosuch", Arguments: tool.Args{"input": "x"}})
		require.Error(t, hidden)
		require.Equal(t, none.Error(), strings.ReplaceAll(hidden.Error(), "secret", "nosuch"))
	})
}
