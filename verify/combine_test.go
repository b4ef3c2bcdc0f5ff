package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// TestAllAndAnyAgreeWithTheirText compares every combination of up to four
// verdicts with the documentation.
func TestAllAndAnyAgreeWithTheirText(t *testing.T) {
	verdicts := []verify.Verdict{verify.CannotTell("c"), verify.Applied("a"), verify.Partial("p"), verify.Absent("n")}
	count := func(of []verify.Verdict, is effect.Presence) (n int) {
		for _, v := range of {
			if v.Presence() == is {
				n++
			}
		}
		return n
	}
	all := func(of []verify.Verdict) effect.Presence {
		switch {
		case len(of) > 0 && count(of, effect.PresenceApplied) == len(of):
			return effect.PresenceApplied
		case len(of) > 0 && count(of, effect.PresenceAbsent) == len(of):
			return effect.PresenceAbsent
		case len(of) == 0 || count(of, effect.PresenceUnknown) > 0:
			return effect.PresenceUnknown
		}
		return effect.PresencePartial
	}
	any := func(of []verify.Verdict) effect.Presence {
		switch {
		case count(of, effect.PresenceApplied) > 0:
			return effect.PresenceApplied
		case len(of) > 0 && count(of, effect.PresenceAbsent) == len(of):
			return effect.PresenceAbsent
		case len(of) == 0 || count(of, effect.PresenceUnknown) > 0:
			return effect.PresenceUnknown
		}
		return effect.PresencePartial
	}
	seen := 0
	var walk func(of []verify.Verdict)
	walk = func(of []verify.Verdict) {
		seen++
		var vs []verify.Verifier
		for _, v := range of {
			vs = append(vs, says(v))
		}
		require.Equal(t, all(of), verify.All(vs...)(context.Background(), verify.Subject{}).Presence(), "all of %v", of)
		require.Equal(t, any(of), verify.Any(vs...)(context.Background(), verify.Subject{}).Presence(), "any of %v", of)
		if len(of) < 4 {
			for _, v := range verdicts {
				walk(append(of[:len(of):len(of)], v))
			}
		}
	}
	walk(nil)
	require.Equal(t, 1+4+16+64+256, seen)
}

func TestOutputSchema(t *testing.T) {
	_, err := verify.OutputSchema(json.RawMessage(`{"type":"nonsense"}`))
	require.ErrorContains(t, err, "the output schema")
	_, err = verify.OutputSchema(json.RawMessage(`{"$ref":"file:///etc/passwd"}`))
	require.Error(t, err)
	v, err := verify.OutputSchema(json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`))
	require.NoError(t, err)
	for output, want := range map[string]effect.Presence{
		`{"n":1}`: effect.PresenceApplied, `{"n":"1"}`: effect.PresenceAbsent, `{}`: effect.PresenceAbsent, `{"n":1,"n":1}`: effect.PresenceAbsent, `no`: effect.PresenceAbsent,
	} {
		got := v(context.Background(), verify.Subject{Phase: verify.AfterCall, Output: json.RawMessage(output)})
		require.Equal(t, want, got.Presence(), output)
	}
	require.Equal(t, effect.PresenceUnknown, v(context.Background(), verify.Subject{Phase: verify.AfterCall}).Presence())
	lost := verify.Subject{Phase: verify.Recovery, Output: json.RawMessage(`{"n":1}`)}
	require.Equal(t, effect.PresenceUnknown, v(context.Background(), lost).Presence())
}

// textView is a ResourceView of texts. A resource that holds "!" cannot be read.
type textView struct{ now, was map[string]string }

func (s textView) read(from map[string]string, name string) (io.ReadCloser, error) {
	text, ok := from[name]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case text == "!":
		return nil, errors.New("it is locked")
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func (s textView) Version(_ context.Context, name string) (string, error) {
	switch text, ok := s.now[name]; {
	case !ok:
		return "absent", nil
	case text == "!":
		return "", errors.New("it is locked")
	default:
		return "v:" + text, nil
	}
}

func (s textView) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return s.read(s.now, name)
}

func (s textView) Before(_ context.Context, name string) (io.ReadCloser, error) {
	return s.read(s.was, name)
}

func TestFileHas(t *testing.T) {
	v := verify.FileContent(func(in struct{ Content string }) (string, []byte) { return "f", []byte(in.Content) })
	file := func(text string) map[string]string { return map[string]string{"f": text} }
	for name, tc := range map[string]struct {
		world verify.ResourceView
		want  effect.Presence
	}{
		"it has":                {textView{now: file("new")}, effect.PresenceApplied},
		"it begins so":          {textView{now: file("new and more")}, effect.PresencePartial},
		"a beginning of it":     {textView{now: file("ne")}, effect.PresencePartial},
		"not there":             {textView{}, effect.PresenceAbsent},
		"as before":             {textView{now: file("old"), was: file("old")}, effect.PresenceAbsent},
		"neither":               {textView{now: file("else"), was: file("old")}, effect.PresencePartial},
		"longer than before":    {textView{now: file("old and more"), was: file("old")}, effect.PresencePartial},
		"cannot be read":        {textView{now: file("!")}, effect.PresenceUnknown},
		"before cannot be read": {textView{now: file("else"), was: file("!")}, effect.PresenceUnknown},
		"no world":              {nil, effect.PresenceUnknown},
	} {
		got := v(context.Background(), verify.Subject{Phase: verify.Recovery, Input: json.RawMessage(`{"Content":"new"}`), Resources: tc.world})
		require.Equal(t, tc.want, got.Presence(), name)
	}
	require.Equal(t, effect.PresenceUnknown, v(context.Background(), verify.Subject{Input: json.RawMessage(`[]`), Resources: textView{}}).Presence())
}

func TestUnchanged(t *testing.T) {
	v := verify.Unchanged(func(in []string) []string { return in })
	world := textView{now: map[string]string{"a": "1", "b": "2", "locked": "!"}}
	changes := []verify.Change{
		{Resource: "a", Before: "v:1", After: "v:2"},
		{Resource: "a", Before: "v:2", After: "v:1"},
		{Resource: "b", Before: "v:1", After: "v:2"},
		{Resource: "locked", Before: "v:1"},
		{Resource: "gone", Before: "v:1"},
	}
	for input, want := range map[string]effect.Presence{
		`[]`: effect.PresenceApplied, `["other"]`: effect.PresenceApplied, `["a"]`: effect.PresenceApplied, `["a","b"]`: effect.PresencePartial,
		`["gone"]`: effect.PresencePartial, `["locked"]`: effect.PresenceUnknown, `{}`: effect.PresenceUnknown,
	} {
		got := v(context.Background(), verify.Subject{Input: json.RawMessage(input), Changes: changes, Resources: world})
		require.Equal(t, want, got.Presence(), input)
	}
	none := v(context.Background(), verify.Subject{Input: json.RawMessage(`["b"]`), Changes: changes})
	require.Equal(t, effect.PresenceUnknown, none.Presence(), "without a world nothing can be told")
}
