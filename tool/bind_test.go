package tool_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

type station struct{ rain string }

type ask struct {
	City string `json:"city" jsonschema:"Where."`
	Days int    `json:"days" default:"3" enum:"1,3,7"`
}

type reply struct {
	Text string `json:"text"`
	Days int    `json:"days"`
}

func (s *station) ForecastWeather(_ context.Context, in ask) (reply, error) {
	if in.City == "" {
		return reply{}, errors.New("nowhere")
	}
	return reply{s.rain, in.Days}, nil
}

func (*station) ReadHTTPPage(_ context.Context, tc ctxperm.ToolContext, _ ask) (string, error) {
	return tc.Call().Tool, nil
}

func (*station) NoContext(ask) (reply, error)                { return reply{}, nil }
func (*station) NoError(context.Context, ask) reply          { return reply{} }
func (*station) Many(context.Context, ...ask) (reply, error) { return reply{}, nil }

func (*station) Four(context.Context, ctxperm.ToolContext, ask, ask) (reply, error) {
	return reply{}, nil
}

func (*station) OtherContext(context.Context, context.Context, ask) (reply, error) {
	return reply{}, nil
}

func (*station) Channels(context.Context, struct{ In chan int }) (reply, error) { return reply{}, nil }

func (*station) Functions(context.Context, ask) (struct{ Inner struct{ F func() } }, error) {
	return struct{ Inner struct{ F func() } }{}, nil
}

// TestBind: the named methods are tools, and no other.
func TestBind(t *testing.T) {
	all, err := tool.Bind(&station{"rain"}, map[string]tool.Spec{
		"ReadHTTPPage":    {EffectClass: effect.Pure},
		"ForecastWeather": {Description: "Tell the weather.", EffectClass: effect.Pure},
	})
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "forecast_weather", all[0].Name())
	require.Equal(t, "read_http_page", all[1].Name())
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["city"],"properties":{
		"city":{"type":"string","description":"Where."},"days":{"type":"integer","enum":[1,3,7],"default":3}}}`, string(all[0].InputSchema()))
	run := all[0].Spec().Execute
	got, err := run(t.Context(), ctxperm.ToolContext{}, []byte(`{"city":"Oslo","days":7}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"text":"rain","days":7}`, string(got.JSON))
	_, err = run(t.Context(), ctxperm.ToolContext{}, []byte(`{"city":""}`))
	require.EqualError(t, err, "nowhere")
	_, err = run(t.Context(), ctxperm.ToolContext{}, []byte(`{"city":1}`))
	require.Error(t, err)
	same, err := tool.CreateTyped("forecast_weather", "Tell the weather.", nil,
		func(context.Context, ctxperm.ToolContext, ask) (reply, error) { return reply{}, nil }, tool.Pure())
	require.NoError(t, err)
	require.Equal(t, same.Digest(), all[0].Digest(), "what CreateTyped makes")
	none, err := tool.Bind(&station{}, nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestBindRefuses: what is no tool is refused by the names of its method and field.
func TestBindRefuses(t *testing.T) {
	for name, says := range map[string]string{
		"Forecastweather": "method Forecastweather of *tool_test.station: there is none; did you mean ForecastWeather?",
		"zzz":             "there is none that is exported; there are: Channels, ForecastWeather",
		"NoContext":       "it is a func(tool_test.ask) (tool_test.reply, error), want func(context.Context, In) (Out, error)",
		"NoError":         "want func(context.Context, In)",
		"Many":            "want func(context.Context, In)",
		"Four":            "want func(context.Context, In)",
		"OtherContext":    "want func(context.Context, In)",
		"Channels":        "input: invalid schema: struct { In chan int }.In is of type chan int",
		"Functions":       ".Inner.F is of type func()",
	} {
		_, err := tool.Bind(&station{}, map[string]tool.Spec{name: {}})
		require.ErrorContains(t, err, says, name)
	}
	_, err := tool.Bind(nil, nil)
	require.ErrorContains(t, err, "there is no value")
	_, err = tool.Bind((*station)(nil), nil)
	require.ErrorContains(t, err, "there is no value")
	_, err = tool.Bind(&station{}, map[string]tool.Spec{"ForecastWeather": {Params: tool.Params{}}})
	require.ErrorContains(t, err, "leave them out")
	_, err = tool.Bind(&station{}, map[string]tool.Spec{"ForecastWeather": {Name: "Bad Name"}})
	require.ErrorContains(t, err, "lower-case")
}
