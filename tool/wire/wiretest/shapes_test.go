package wiretest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool/wire"
)

// sdk is one provider's, with what it needs to be tried.
type sdk struct {
	format  wire.Format
	history string // the member of a request in which the messages stand
	choices []wire.ToolChoice

	// respond writes the body of a response with calls, as the provider's reference shows it, and what of it belongs into the
	// history.
	respond func(calls []called) (body json.RawMessage, turn []json.RawMessage)
	// converse asks twice with the SDK's client: with the members of a request that the adapter wrote, and then with the turn
	// and what answers it. It returns the calls as the SDK has read them.
	converse func(t *testing.T, url string, fields map[string]json.RawMessage, answer answer) []called
}

// answer is given the turn as the SDK has it, as JSON, and returns what the adapter answers.
type answer func(turn json.RawMessage) []json.RawMessage

func sdks() []sdk {
	return []sdk{openAIChat(), openAIResponses(), anthropicMessages(), gemini(), bedrock(), ollama()}
}

func TestEveryFormatHasItsSDK(t *testing.T) {
	var have []wire.Format
	for _, s := range sdks() {
		have = append(have, s.format)
	}
	require.ElementsMatch(t, wire.Formats(), have)
}

// What the adapter writes arrives as it was written, through the types and the client of the SDK, for tools, turns and outcomes
// that are drawn; and the adapter reads of a turn what the SDK reads.
func TestShapesArriveAsTheyAre(t *testing.T) {
	cases := 60
	if os.Getenv("REMIT_LONG") != "" {
		cases = 2000
	}
	for _, s := range sdks() {
		t.Run(string(s.format), func(t *testing.T) {
			m := newMaker(uint64(len(s.format)))
			strict, errored := 0, 0
			for i := range cases {
				hard, failed := s.try(t, m, s.choices[i%len(s.choices)])
				strict += hard
				errored += failed
			}
			require.Greater(t, errored, cases/4)
			t.Logf("%d conversations, %d strict tools, %d failed calls", cases, strict, errored)
		})
	}
}

// try is one conversation: a request, a turn of calls, a request with their results.
func (s sdk) try(t *testing.T, m maker, choice wire.ToolChoice) (strict, failed int) {
	tools := m.tools(t)
	a, err := wire.New(s.format, tools...)
	require.NoError(t, err)
	if m.flip() {
		a = a.Strict()
	}
	for _, made := range tools {
		if a.WhyNotStrict(made.Name()) == "" {
			strict++
		}
	}
	fields, err := a.Request(choice)
	require.NoError(t, err)
	calls := m.calls(tools)
	outcomes := m.outcomes(calls)
	body, turn := s.respond(calls)
	server := serve(t, body)
	var results []json.RawMessage
	var read []wire.Call
	seen := s.converse(t, server.URL, fields, func(turn json.RawMessage) []json.RawMessage {
		read, err = a.Calls(turn)
		require.NoError(t, err, "%s", turn)
		results, err = a.Results(read, outcomes)
		require.NoError(t, err)
		return results
	})

	// 1: the definitions, and the choice.
	require.Len(t, server.bodies, 2)
	for _, sent := range server.bodies {
		for name, value := range fields {
			require.JSONEq(t, string(value), string(sent[name]), "member %q of the request", name)
		}
	}
	// 2: the calls.
	require.Len(t, read, len(calls))
	for i, c := range read {
		require.Equal(t, calls[i].id, c.ID)
		require.Equal(t, calls[i].name, c.Name)
		require.Equal(t, seen[i].id, c.ID)
		require.Equal(t, seen[i].name, c.Name)
		want := seen[i].args
		if c.Problem == nil && !json.Valid(c.Input) {
			require.Fail(t, "not JSON", "%s", c.Input)
		}
		if c.Problem == nil && !strings.HasPrefix(string(c.Input), "{") { // a text that travels in an object
			want = member(t, want, "input")
		}
		if c.Problem == nil {
			require.JSONEq(t, string(want), string(c.Input))
		}
		if c.Problem != nil || !outcomes[i].Status.OK() {
			failed++
		}
	}
	// 3: the turn as it was, and the results.
	var history []json.RawMessage
	require.NoError(t, json.Unmarshal(server.bodies[1][s.history], &history))
	history = history[1:] // without what the user said
	require.Len(t, history, len(turn)+len(results))
	for i, want := range slices.Concat(turn, results) {
		require.JSONEq(t, string(want), string(history[i]), "message %d", i)
	}
	return strict, failed
}

// member is one member of an object.
func member(t *testing.T, raw json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var o map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &o), "%s", raw)
	return o[name]
}

// server answers every request alike, and keeps what was asked.
type server struct {
	*httptest.Server
	bodies []map[string]json.RawMessage
}

func serve(t *testing.T, body json.RawMessage) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var sent map[string]json.RawMessage
		if err != nil || json.Unmarshal(raw, &sent) != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		s.bodies = append(s.bodies, sent)
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(string(body), "event: ") || strings.HasPrefix(string(body), "data: ") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s
}

// into puts what the adapter wrote into a type of the SDK.
func into(t *testing.T, target any, fields map[string]json.RawMessage) {
	t.Helper()
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, target), "%s", raw)
}

// marshal writes JSON that cannot fail to be written.
func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

var every = []wire.ToolChoice{
	{}, {Mode: wire.Auto}, {Mode: wire.Required}, {Mode: wire.None}, {Mode: wire.Required, Tool: "say"}, {Single: true}, {Mode: wire.Required, Single: true},
}

func choices(keep func(wire.ToolChoice) bool) (out []wire.ToolChoice) {
	for _, c := range every {
		if keep(c) {
			out = append(out, c)
		}
	}
	return out
}
