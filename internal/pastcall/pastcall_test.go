package pastcall_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/history"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pastcall"
	"github.com/remit-dev/remit/perm"
)

func TestAmount(t *testing.T) {
	const bad = "bad"
	for _, tt := range []struct{ args, pointer, want string }{
		{`{"a":0.1}`, "/a", "0.1"},
		{`{"a":{"b":[1,2.50]}}`, "/a/b/1", "2.5"},
		{`{"a/b":{"~":3}}`, "/a~1b/~0", "3"},
		{`{"":4}`, "/", "4"},
		{`{"a":1e2}`, "/a", "100"},
		{`{"b":1}`, "/a", "0"},
		{`{"a":null}`, "/a", "0"},
		{`{"a":null}`, "/a/b", "0"},
		{`{"a":[1]}`, "/a/1", "0"},
		{`{"a":[1]}`, "/a/00", "0"},
		{`{"a":[1]}`, "/a/x", "0"},
		{`{"a":"1"}`, "/a", bad},
		{`{"a":true}`, "/a", bad},
		{`{"a":{}}`, "/a", bad},
		{`{"a":[]}`, "/a", bad},
		{`{"a":-1}`, "/a", bad},
		{`{"a":"[redacted]"}`, "/a/b", bad},
		{`"free text 12"`, "/a", bad},
		{`[1]`, "/0", bad},
		{`null`, "/a", bad},
		{``, "/a", bad},
	} {
		a, err := pastcall.Amount(json.RawMessage(tt.args), tt.pointer)
		if tt.want == bad {
			require.Error(t, err, tt)
			continue
		}
		require.NoError(t, err, tt)
		require.Equal(t, tt.want, a.String(), tt)
	}
	sum, err := pastcall.Plus("0.1", map[string]any{"a": json.Number("0.2")}, "/a")
	require.NoError(t, err)
	require.Equal(t, json.Number("0.3"), sum)
	for _, args := range []any{"text", map[string]any{"a": "2"}, func() {}} {
		_, err = pastcall.Plus("0.1", args, "/a")
		require.Error(t, err)
	}
	_, err = pastcall.Plus(json.Number(strings.Repeat("1", 41)), map[string]any{}, "/a")
	require.Error(t, err, "more digits than a number may have")
}

// TestShapeKeepsAmounts compares the amounts of arguments and of their shapes,
// with names and texts of quotes, brackets, colons and backslashes.
func TestShapeKeepsAmounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab\"\\{}[]:,\n1ü")))
		names := rapid.SampledFrom([]string{"", "a", "b\"", "c\\", ":", "1"})
		var value func(depth int) *rapid.Generator[any]
		value = func(depth int) *rapid.Generator[any] {
			of := []*rapid.Generator[any]{text.AsAny(), rapid.IntRange(-9, 99).AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil)}
			if depth > 0 {
				of = append(of, rapid.SliceOfN(value(depth-1), 0, 3).AsAny(), rapid.MapOfN(names, value(depth-1), 0, 3).AsAny())
			}
			return rapid.OneOf(of...)
		}
		args, err := canon.Marshal(value(3).Draw(t, "args"))
		require.NoError(t, err)
		shape := pastcall.Shape(args)
		again, err := canon.Canonicalize(shape, canon.DefaultLimits())
		require.NoError(t, err)
		require.Equal(t, string(again), string(shape))
		pointer := rapid.StringMatching(`(/([ab1:"]|~0|~1|b"|c\\)?){1,3}`).Draw(t, "pointer")
		want, wantErr := pastcall.Amount(args, pointer)
		got, err := pastcall.Amount(shape, pointer)
		require.Equal(t, wantErr == nil, err == nil, "%s of %s, %s", pointer, shape, args)
		require.Equal(t, want.String(), got.String())
	})
	large := json.RawMessage(`{"amount":7,"content":"` + strings.Repeat("x\\\"", 100_000) + `"}`)
	require.Equal(t, `{"amount":7,"content":""}`, string(pastcall.Shape(large)))
	require.Nil(t, pastcall.Shape(json.RawMessage(`{"a":[`+strings.Repeat("1,", 3000)+`1]}`)))
	require.Nil(t, pastcall.Shape(nil))
}

func TestPatternErrors(t *testing.T) {
	for _, q := range []history.Query{{Outcome: "ok"}, {Effect: "read"}, {Resource: "/etc"}, {Resource: "file://ws/{path}"}, {Window: "1d"}, {Window: "0"}, {Window: "10001"}, {Sum: "amount"}} {
		_, err := pastcall.List{}.Find(q)
		require.Error(t, err, q)
	}
	_, err := pastcall.Unknown{}.Find(history.Query{})
	require.ErrorIs(t, err, pastcall.ErrUnknown)
}

func TestGlobsOfTools(t *testing.T) {
	for pattern, names := range map[string]string{
		"mail_*": "mail_,mail_send", "*": ",a,mail_send", "*_*_b": "__b,a_a_b,a_b_b", "a*a": "aa,aba", "a": "a",
	} {
		for _, name := range []string{"", "a", "aa", "aba", "mail_", "mail_send", "__b", "a_a_b", "a_b_b", "a_b"} {
			want := strings.Contains(","+names+",", ","+name+",") || pattern == "*"
			a, err := pastcall.List{{Tool: name, Outcome: "done"}}.Find(history.Query{Tool: pattern})
			require.NoError(t, err)
			require.Equal(t, want, a.Count == 1, "%s, %s", pattern, name)
		}
	}
}

// TestPlacesHoldMatches looks for a resource that a pattern without wildcards
// matches at another place: an index by places would miss it.
func TestPlacesHoldMatches(t *testing.T) {
	texts := []string{
		"file://ws/a", "file://ws/a/b", "file://ws", "https://a.example/x", "https://a.example:443/x", "https://a.example:8443/x", "http://a.example/x", "https://a.example/",
		"db://m/t", "db://m", "db://m/t?statement=select", "exec://git", "exec:///usr/bin/git", "secret://token", "tool://mail", "mcp://s/t",
	}
	exact := 0
	for _, text := range texts {
		p, err := pastcall.Parse(history.Query{Resource: text})
		if err != nil {
			continue
		}
		_, place := p.Exact()
		for _, other := range texts {
			r, err := perm.ParseResource(other)
			if err != nil || place == "" {
				continue
			}
			exact++
			if matches, _ := p.Matches(&history.Call{Outcome: "done", Resources: []string{other}}); matches {
				require.Equal(t, place, pastcall.Place(r), "%s matches %s", text, other)
			}
		}
	}
	require.Greater(t, exact, 100)
}

func TestWindowOfList(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	list := pastcall.List{{Tool: "a", Outcome: "done", At: now.Add(-time.Hour)}, {Tool: "b", Outcome: "done", At: now}, {Tool: "a", Outcome: "denied", At: now}}
	for window, want := range map[string]history.Answer{"": {Count: 2, Last: 2}, "1h": {Count: 1, Last: 2}, "1": {}, "2": {Count: 1, Last: 2}, "61m": {Count: 2, Last: 2}} {
		got, err := list.Find(history.Query{Window: window, Now: now})
		require.NoError(t, err)
		require.Equal(t, want, got, window)
	}
}
