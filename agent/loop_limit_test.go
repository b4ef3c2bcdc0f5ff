package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/remit-dev/remit/tool/wire"
)

func TestLoopLimits(t *testing.T) {
	one := call("look", `{"n":1}`)
	endless := []fakemodel.Turn{spoken("", one, one), spoken("", one, one), spoken("", one, one), spoken("", one, one)}
	for _, tt := range []struct {
		name   string
		limits agent.LoopLimits
		ran    int
		notice string
	}{
		{"turns", agent.LoopLimits{MaxTurns: 2}, 4, "the limit of 2 turns is reached"},
		{"calls", agent.LoopLimits{MaxCalls: 3}, 3, "the limit of 3 calls is reached"},
		{"bytes", agent.LoopLimits{MaxBytes: 80}, 4, "the limit of 80 bytes of results is reached"},
		{"time", agent.LoopLimits{Timeout: time.Minute}, 2, "the time limit of 1m0s is reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			formats(t, func(t *testing.T, f wire.Format) {
				for _, obeys := range []bool{true, false} {
					h := hosttest.New(1)
					b := newLoopBench(t, f, endless, agent.Host(h))
					next := b.loop.CallModel
					b.loop.CallModel = func(ctx context.Context, p agent.ModelRequest) (json.RawMessage, error) {
						if obeys && len(p.Messages) > 1 && strings.Contains(string(p.Messages[len(p.Messages)-1]), "No further call is run") {
							answer, err := fakemodel.New(string(f), spoken("That is all I know."))
							require.NoError(t, err)
							body, err := answer.Body([]json.RawMessage{answer.User("x")}, nil)
							require.NoError(t, err)
							return answer.Answer(body)
						}
						if tt.name == "time" {
							h.Advance(40 * time.Second)
						}
						return next(ctx, p)
					}
					b.loop.Limits = tt.limits
					c, err := b.run(context.Background())
					require.ErrorIs(t, err, agent.ErrLoopLimit)
					require.ErrorContains(t, err, tt.notice)
					require.Equal(t, tt.notice, c.Stopped)
					require.Len(t, b.ran, tt.ran)
					require.Equal(t, tt.ran, c.Calls)
					require.False(t, c.Open)
					if obeys {
						require.Contains(t, string(c.Messages[len(c.Messages)-1]), "That is all I know.")
					}
				}
			})
		})
	}
}

// A conversation that keeps to its limits to the last never hears of them.
func TestLoopLimitsAreInclusive(t *testing.T) {
	one := call("look", `{"n":1}`)
	b := newLoopBench(t, wire.Anthropic, []fakemodel.Turn{spoken("", one, one), spoken("", one, one), spoken("Done.")})
	b.loop.Limits = agent.LoopLimits{MaxTurns: 2, MaxCalls: 4, MaxTurnCalls: 2}
	c, err := b.run(context.Background())
	require.NoError(t, err)
	require.Empty(t, c.Stopped)
	require.Len(t, b.ran, 4)
}

func TestLoopLimitsOfATurn(t *testing.T) {
	one := call("look", `{"n":1}`)
	formats(t, func(t *testing.T, f wire.Format) {
		b := newLoopBench(t, f, []fakemodel.Turn{spoken("", one, one, one), spoken("", one), spoken("Done.")})
		b.loop.Limits = agent.LoopLimits{MaxTurnCalls: 2, MaxTurnBytes: 30}
		_, err := b.run(context.Background())
		require.NoError(t, err, "it ends nothing")
		require.Len(t, b.ran, 3)
		told := b.model.Received()
		require.Equal(t, `look has seen {"n":1}`, told[0].Text)
		require.True(t, strings.HasPrefix(told[1].Text, "look has \n[The call was done. Its result has 21 bytes, and 9 of them are shown"), told[1].Text)
		require.Contains(t, told[2].Text, "at most 2 calls are run in one turn")
		require.True(t, told[2].Failed)
	})
	b := newLoopBench(t, wire.Anthropic, []fakemodel.Turn{spoken("", one), spoken("Done.")})
	b.loop.Limits = agent.LoopLimits{TurnTimeout: time.Nanosecond}
	_, err := b.run(context.Background())
	require.NoError(t, err)
	require.True(t, b.model.Received()[0].Failed)
	for _, l := range []agent.LoopLimits{{MaxTurns: -1}, {MaxCalls: -1}, {MaxBytes: -1}, {Timeout: -1}, {MaxTurnCalls: -1}, {MaxTurnBytes: -1}, {TurnTimeout: -1}} {
		b.loop.Limits = l
		_, err := b.run(context.Background())
		require.ErrorContains(t, err, "is negative")
	}
}

func TestLoopChoice(t *testing.T) {
	look, write, bad := call("look", `{"n":1}`), call("write", `{"n":1}`), call("nothing", `{}`)
	done := spoken("Done.")
	for _, tt := range []struct {
		name   string
		choice wire.ToolChoice
		script []fakemodel.Turn
		ran    int
		err    error
	}{
		{"required", wire.ToolChoice{Mode: wire.Required}, []fakemodel.Turn{spoken("No."), spoken("", look), done}, 1, nil},
		{"required, a bad call", wire.ToolChoice{Mode: wire.Required}, []fakemodel.Turn{spoken("", bad), spoken("", look), done}, 1, nil},
		{"required, never", wire.ToolChoice{Mode: wire.Required}, []fakemodel.Turn{spoken("No."), spoken("No."), spoken("No.")}, 0, agent.ErrToolChoice},
		{"required, bad for ever", wire.ToolChoice{Mode: wire.Required}, []fakemodel.Turn{spoken("", bad), spoken("", bad), spoken("", bad)}, 0, agent.ErrToolChoice},
		{"one", wire.ToolChoice{Mode: wire.Required, Tool: "write"}, []fakemodel.Turn{spoken("", look, write), spoken("", look), done}, 2, nil},
		{"one, another", wire.ToolChoice{Mode: wire.Required, Tool: "write"}, []fakemodel.Turn{spoken("", look), spoken("", write), done}, 1, nil},
		{"one, never", wire.ToolChoice{Mode: wire.Required, Tool: "write"}, []fakemodel.Turn{spoken("", look), spoken("No."), spoken("", look)}, 0, agent.ErrToolChoice},
		{"none", wire.ToolChoice{Mode: wire.None}, []fakemodel.Turn{done}, 0, nil},
		{"none, called", wire.ToolChoice{Mode: wire.None}, []fakemodel.Turn{spoken("", look), done}, 0, nil},
		{"none, always", wire.ToolChoice{Mode: wire.None}, []fakemodel.Turn{spoken("", look), spoken("", look), spoken("", look)}, 0, agent.ErrToolChoice},
		{"auto", wire.ToolChoice{Mode: wire.Auto}, []fakemodel.Turn{spoken("", look), done}, 1, nil},
		{"single", wire.ToolChoice{Single: true}, []fakemodel.Turn{spoken("", look, write), spoken("", write), done}, 2, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			formats(t, func(t *testing.T, f wire.Format) {
				b := newLoopBench(t, f, tt.script)
				b.loop.ToolChoice = tt.choice
				c, err := b.run(context.Background())
				if tt.err == nil {
					require.NoError(t, err)
					require.Contains(t, string(c.Messages[len(c.Messages)-1]), "Done.")
				} else {
					require.ErrorIs(t, err, tt.err)
					require.NotEmpty(t, c.Stopped)
				}
				require.Len(t, b.ran, tt.ran)
				require.Equal(t, len(tt.script), b.model.Answered())
			})
		})
	}
}

func TestLoopRefusesWhatItCannotDo(t *testing.T) {
	b := newLoopBench(t, wire.Anthropic, []fakemodel.Turn{spoken("Done.")})
	tx := begin(t, b.s)
	for want, change := range map[string]func(*agent.Loop, *agent.Conversation){
		"CallModel is missing": func(l *agent.Loop, _ *agent.Conversation) { l.CallModel = nil },
		"unknown order":        func(l *agent.Loop, _ *agent.Conversation) { l.Order = 9 },
		"no messages":          func(_ *agent.Loop, c *agent.Conversation) { c.Messages = nil },
		"in the format gemini": func(_ *agent.Loop, c *agent.Conversation) { c.Format = wire.Gemini },
		"zero Adapter":         func(l *agent.Loop, _ *agent.Conversation) { l.Adapter = wire.Adapter{} },
		"which is not offered": func(l *agent.Loop, _ *agent.Conversation) {
			l.ToolChoice = wire.ToolChoice{Mode: wire.Required, Tool: "rm"}
		},
		"unknown mode":            func(l *agent.Loop, _ *agent.Conversation) { l.ToolChoice.Mode = "maybe" },
		"no turn of the format":   func(l *agent.Loop, _ *agent.Conversation) { l.CallModel = overloaded },
		"the model was not heard": func(l *agent.Loop, _ *agent.Conversation) { l.CallModel = ignoreContext },
		"could not be kept":       func(l *agent.Loop, _ *agent.Conversation) { l.Save = forgets },
		"the turn was cut short":  func(l *agent.Loop, _ *agent.Conversation) { l.CallModel = cutShort },
	} {
		l, c := b.loop, b.user()
		change(&l, &c)
		_, err := l.Run(context.Background(), tx, c)
		require.ErrorContains(t, err, want)
	}
	_, err := b.loop.Run(context.Background(), nil, b.user())
	require.ErrorContains(t, err, "there is no transaction")
	require.Empty(t, b.ran)
}

func overloaded(context.Context, agent.ModelRequest) (json.RawMessage, error) {
	return json.RawMessage(`{"type":"error","error":{"type":"overloaded_error"}}`), nil
}

func ignoreContext(context.Context, agent.ModelRequest) (json.RawMessage, error) {
	return nil, errors.New("no route")
}

func forgets(context.Context, agent.Conversation) error { return errors.New("the disk is full") }

func cutShort(context.Context, agent.ModelRequest) (json.RawMessage, error) {
	return json.RawMessage(`{"role":"assistant","content":[{"type":"text","text":"And so"}],"stop_reason":"max_tokens"}`), nil
}

// A provider that pauses a turn gets it back as it is; one that could not read its model's call has it tried again.
func TestLoopGoesOnWithAPausedTurn(t *testing.T) {
	b := newLoopBench(t, wire.Anthropic, nil)
	replies := []string{
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}],"stop_reason":"pause_turn"}`,
		`{"role":"assistant","content":[{"type":"text","text":"Found."}],"stop_reason":"end_turn"}`,
	}
	b.loop.CallModel = func(_ context.Context, p agent.ModelRequest) (json.RawMessage, error) {
		r := replies[len(p.Messages)-1]
		return json.RawMessage(r), nil
	}
	c, err := b.run(context.Background())
	require.NoError(t, err)
	require.Len(t, c.Messages, 3)
	b.loop.CallModel = func(context.Context, agent.ModelRequest) (json.RawMessage, error) {
		return json.RawMessage(replies[0]), nil
	}
	b.loop.Limits.MaxTurns = 3
	_, err = b.run(context.Background())
	require.ErrorIs(t, err, agent.ErrLoopLimit)
}

func TestLoopHasAnUnreadableCallTriedAgain(t *testing.T) {
	b := newLoopBench(t, wire.Gemini, nil)
	bad := `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","index":0}]}`
	good := `{"candidates":[{"content":{"role":"model","parts":[{"text":"Done."}]},"finishReason":"STOP"}]}`
	b.loop.CallModel = func(_ context.Context, p agent.ModelRequest) (json.RawMessage, error) {
		if len(p.Messages) == 1 {
			return json.RawMessage(bad), nil
		}
		require.JSONEq(t, `{"role":"user","parts":[{"text":"Your last call could not be read, and nothing of it was run. Send it again, with arguments that are valid JSON."}]}`,
			string(p.Messages[1]))
		return json.RawMessage(good), nil
	}
	_, err := b.run(context.Background())
	require.NoError(t, err)
	b.loop.CallModel = func(context.Context, agent.ModelRequest) (json.RawMessage, error) { return json.RawMessage(bad), nil }
	_, err = b.run(context.Background())
	require.ErrorIs(t, err, agent.ErrIncompleteTurn)
}
