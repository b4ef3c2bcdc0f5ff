package mcp_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// asks is a client that is asked, and leaves the rest to the test.
func asks() *sdk.ClientOptions {
	return &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	}
}

// retry repeats a call with what was carried, and an answer. What the server cannot have given is an error of the protocol.
func (o *office) retry(cs *sdk.ClientSession, name string, args any, state string, said *sdk.ElicitResult) *sdk.CallToolResult {
	o.t.Helper()
	p := &sdk.CallToolParams{Name: name, Arguments: args, RequestState: state}
	if said != nil {
		p.InputResponses = sdk.InputResponseMap{"approval": said}
	}
	r, err := cs.CallTool(o.t.Context(), p)
	var fault *jsonrpc.Error
	if errors.As(err, &fault) {
		require.EqualValues(o.t, jsonrpc.CodeInvalidParams, fault.Code)
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: fault.Message}}}
	}
	require.NoError(o.t, err)
	return r
}

func (o *office) ask(cs *sdk.ClientSession) (state string) {
	o.t.Helper()
	r := o.call(cs, "send", letterInput)
	require.True(o.t, r.NeedsInput())
	require.Len(o.t, r.InputRequests, 1)
	require.Empty(o.t, r.Content)
	return r.RequestState
}

// TestRequestState: what a client carries counts once, for the call that it was given for, unchanged and in time.
func TestRequestState(t *testing.T) {
	const notThis = "is none that this server gave for this call, or it was changed"
	flip := func(state string) string {
		data, err := base64.RawURLEncoding.DecodeString(state)
		require.NoError(t, err)
		data[len(data)/2] ^= 1
		return base64.RawURLEncoding.EncodeToString(data)
	}
	for _, tt := range []struct {
		name string
		do   func(o *office, cs *sdk.ClientSession, state string) *sdk.CallToolResult
		text string
		sent int64
	}{
		{"as it was given", func(o *office, cs *sdk.ClientSession, state string) *sdk.CallToolResult {
			return o.retry(cs, "send", letterInput, state, yes())
		}, "", 1},
		{"altered", func(o *office, cs *sdk.ClientSession, state string) *sdk.CallToolResult {
			return o.retry(cs, "send", letterInput, flip(state), yes())
		}, notThis, 0},
		{"with a line break", func(o *office, cs *sdk.ClientSession, state string) *sdk.CallToolResult {
			return o.retry(cs, "send", letterInput, state[:9]+"\n"+state[9:], yes())
		}, notThis, 0},
		{"made up", func(o *office, cs *sdk.ClientSession, _ string) *sdk.CallToolResult {
			plain, err := json.Marshal(map[string]any{"v": 1, "call": "c_x"})
			require.NoError(o.t, err)
			return o.retry(cs, "send", letterInput, base64.RawURLEncoding.EncodeToString(plain), yes())
		}, notThis, 0},
		{"no base64", func(o *office, cs *sdk.ClientSession, _ string) *sdk.CallToolResult {
			return o.retry(cs, "send", letterInput, "§§", yes())
		}, notThis, 0},
		{"with another input", func(o *office, cs *sdk.ClientSession, state string) *sdk.CallToolResult {
			return o.retry(cs, "send", tool.Args{"input": "Dear everybody"}, state, yes())
		}, notThis, 0},
		{"for another tool", func(o *office, cs *sdk.ClientSession, state string) *sdk.CallToolResult {
			return o.retry(cs, "upper", letterInput, state, yes())
		}, notThis, 0},
		{"of another session", func(o *office, _ *sdk.ClientSession, state string) *sdk.CallToolResult {
			return o.retry(o.clientOf(modern, asks(), o.session("somebody else")), "send", letterInput, state, yes())
		}, notThis, 0},
		{"of another server", func(o *office, _ *sdk.ClientSession, _ string) *sdk.CallToolResult {
			other := newOffice(o.t, mcp.Options{})
			state := other.ask(other.client(modern, asks()))
			return o.retry(o.client(modern, asks()), "send", letterInput, state, yes())
		}, notThis, 0},
		{"twice", func(o *office, cs *sdk.ClientSession, state string) *sdk.CallToolResult {
			require.False(o.t, o.retry(cs, "send", letterInput, state, yes()).IsError)
			return o.retry(cs, "send", letterInput, state, yes())
		}, "does not wait any more", 1},
		{"after a refusal", func(o *office, cs *sdk.ClientSession, state string) *sdk.CallToolResult {
			require.Equal(o.t, "denied", o.retry(cs, "send", letterInput, state, &sdk.ElicitResult{Action: "decline"}).Meta["remit.dev/status"])
			return o.retry(cs, "send", letterInput, state, yes())
		}, "does not wait any more", 0},
		{"of a tool that is another one by now", func(o *office, cs *sdk.ClientSession, state string) *sdk.CallToolResult {
			var others []tool.Tool
			for _, name := range o.rt.Tools().Names() {
				tl, _ := o.rt.Tools().Get(name)
				if name == "send" {
					var err error
					tl, err = tl.Modify(func(s *tool.Spec) { s.Description = "Send all letters." })
					require.NoError(o.t, err)
				}
				others = append(others, tl)
			}
			require.NoError(o.t, o.rt.SetTools(others...))
			return o.retry(cs, "send", letterInput, state, yes())
		}, notThis, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOffice(t, mcp.Options{})
			cs := o.client(modern, asks())
			r := tt.do(o, cs, o.ask(cs))
			require.Equal(t, tt.text != "", r.IsError)
			require.Contains(t, textOf(t, r), tt.text)
			require.Equal(t, tt.sent, o.sent.Load())
		})
	}
}

// TestRequestStateWithoutAnswer checks that the server asks again about the
// same call if the client repeats it without an answer.
func TestRequestStateWithoutAnswer(t *testing.T) {
	o := newOffice(t, mcp.Options{})
	cs := o.client(modern, asks())
	state := o.ask(cs)
	r := o.retry(cs, "send", letterInput, state, nil)
	require.True(t, r.NeedsInput())
	require.Equal(t, "done", o.retry(cs, "send", letterInput, r.RequestState, yes()).Meta["remit.dev/status"])
	require.EqualValues(t, 1, o.sent.Load())
}

// TestRequestStateLate: an answer after its time does nothing, and the call is denied for good.
func TestRequestStateLate(t *testing.T) {
	clock := hosttest.New(1)
	o := newOffice(t, mcp.Options{}, agent.Host(clock), agent.Limits(tool.Limits{ApprovalTimeout: time.Minute}))
	cs := o.client(modern, asks())
	state := o.ask(cs)
	clock.Advance(time.Minute)
	r := o.retry(cs, "send", letterInput, state, yes())
	require.True(t, r.IsError)
	require.Contains(t, textOf(t, r), "the time to answer is up")
	require.Equal(t, "denied", o.call(cs, "send", letterInput).Meta["remit.dev/status"])
	require.Zero(t, o.sent.Load())
}

// TestRequestStateAtOnce: of many who bring the same, one counts.
func TestRequestStateAtOnce(t *testing.T) {
	o := newOffice(t, mcp.Options{})
	cs := o.client(modern, asks())
	state := o.ask(cs)
	const n = 8
	done := make(chan bool, n)
	for range n {
		go func() {
			r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "send", Arguments: letterInput, RequestState: state, InputResponses: sdk.InputResponseMap{"approval": yes()}})
			done <- err == nil && !r.IsError
		}()
	}
	good := 0
	for range n {
		if <-done {
			good++
		}
	}
	require.Equal(t, 1, good)
	require.EqualValues(t, 1, o.sent.Load())
}

// TestRequestStateOfAnEarlierQuestion: what a client carries is for what it was shown. A call that asks about something else by now, as
// one does whose program has run meanwhile, is not answered by it.
func TestRequestStateOfAnEarlierQuestion(t *testing.T) {
	o := newOffice(t, mcp.Options{})
	in := o.session("coder")
	cs := o.clientOf(modern, asks(), in)
	r := o.call(cs, "send", letterInput)
	call := remitMeta(r, "call")
	_, c, err := revert.LoadCall(t.Context(), o.rt.Journal(), call)
	require.NoError(t, err)
	again := *c.Asked
	again.During, again.Purpose, again.Preview, again.Digest = true, "apply", "all of it", "sha256:another"
	rec := revert.NewRecorder(o.rt.Journal(), host.Real(), in.ID())
	require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Txn: remitMeta(r, "txn"), Call: call, Body: &again}}, Durable: true}))

	r = o.retry(cs, "send", letterInput, r.RequestState, yes())
	require.True(t, r.IsError)
	require.Contains(t, textOf(t, r), "is none that this server gave for this call")
	_, c, err = revert.LoadCall(t.Context(), o.rt.Journal(), call)
	require.NoError(t, err)
	require.Nil(t, c.Answered, "nobody answered what it asks now")
	require.Zero(t, o.sent.Load())
}

// TestKey: with the same key the answer to a question from before a restart counts; with another it does not.
func TestKey(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	o := newOffice(t, mcp.Options{Key: key})
	in := o.session("coder")
	state := o.ask(o.clientOf(modern, asks(), in))
	for _, tt := range []struct {
		key  []byte
		good bool
	}{{nil, false}, {[]byte("another one that is long enough!"), false}, {key, true}} {
		var err error
		o.srv, err = mcp.New(o.rt, mcp.Options{Key: tt.key})
		require.NoError(t, err)
		require.Equal(t, tt.good, !o.retry(o.clientOf(modern, asks(), in), "send", letterInput, state, yes()).IsError)
	}
	_, err := mcp.New(o.rt, mcp.Options{Key: []byte("short")})
	require.ErrorContains(t, err, "at least 16")
}

// TestAskedElsewhereByNow restarts a server so that approvals come from outside
// the client. The server ignores answers to the requests that it made before.
func TestAskedElsewhereByNow(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	o := newOffice(t, mcp.Options{Key: key})
	in := o.session("coder")
	state := o.ask(o.clientOf(modern, asks(), in))
	var err error
	o.srv, err = mcp.New(o.rt, mcp.Options{Key: key, OnAsk: mcp.ApproveOutOfBand})
	require.NoError(t, err)
	r := o.retry(o.clientOf(modern, asks(), in), "send", letterInput, state, yes())
	require.Equal(t, "pending", r.Meta["remit.dev/status"])
	require.True(t, r.IsError)
}

// TestCustomized: a tool that is made for the session is listed, asked about and run as it is made.
func TestCustomized(t *testing.T) {
	o := newOffice(t, mcp.Options{}, agent.CustomizeTool("send", func(who perm.Principal, _ perm.SessionFacts, of tool.Spec) (tool.Spec, error) {
		of.Description = "Send a letter in the name of " + who.ID + "."
		return of, nil
	}))
	cs := o.client(modern, asks())
	list, err := cs.ListTools(t.Context(), nil)
	require.NoError(t, err)
	i := slices.IndexFunc(list.Tools, func(l *sdk.Tool) bool { return l.Name == "send" })
	require.Equal(t, "Send a letter in the name of coder.", list.Tools[i].Description)
	require.Equal(t, "done", o.retry(cs, "send", letterInput, o.ask(cs), yes()).Meta["remit.dev/status"])
}
