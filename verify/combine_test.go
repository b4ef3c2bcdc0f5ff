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

	"github.com/remit-dev/remit/verify"
)

// TestAllAndAnyAgreeWithTheirText compares every combination of up to four
// verdicts with the documentation.
func TestAllAndAnyAgreeWithTheirText(t *testing.T) {
	verdicts := []verify.Verdict{verify.Unclear("c"), verify.Applied("a"), verify.Partial("p"), verify.Absent("n")}
	count := func(of []verify.Verdict, is verify.Is) (n int) {
		for _, v := range of {
			if v.Is() == is {
				n++
			}
		}
		return n
	}
	all := func(of []verify.Verdict) verify.Is {
		switch {
		case len(of) > 0 && count(of, verify.IsApplied) == len(of):
			return verify.IsApplied
		case len(of) > 0 && count(of, verify.IsAbsent) == len(of):
			return verify.IsAbsent
		case len(of) == 0 || count(of, verify.CannotTell) > 0:
			return verify.CannotTell
		}
		return verify.IsPartial
	}
	any := func(of []verify.Verdict) verify.Is {
		switch {
		case count(of, verify.IsApplied) > 0:
			return verify.IsApplied
		case len(of) > 0 && count(of, verify.IsAbsent) == len(of):
			return verify.IsAbsent
		case len(of) == 0 || count(of, verify.CannotTell) > 0:
			return verify.CannotTell
		}
		return verify.IsPartial
	}
	seen := 0
	var walk func(of []verify.Verdict)
	walk = func(of []verify.Verdict) {
		seen++
		var vs []verify.Verifier
		for _, v := range of {
			vs = append(vs, says(v))
		}
		require.Equal(t, all(of), verify.All(vs...)(context.Background(), verify.Subject{}).Is(), "all of %v", of)
		require.Equal(t, any(of), verify.Any(vs...)(context.Background(), verify.Subject{}).Is(), "any of %v", of)
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
	for output, want := range map[string]verify.Is{
		`{"n":1}`: verify.IsApplied, `{"n":"1"}`: verify.IsAbsent, `{}`: verify.IsAbsent, `{"n":1,"n":1}`: verify.IsAbsent, `no`: verify.IsAbsent,
	} {
		got := v(context.Background(), verify.Subject{Phase: verify.AfterCall, Output: json.RawMessage(output)})
		require.Equal(t, want, got.Is(), output)
	}
	require.Equal(t, verify.CannotTell, v(context.Background(), verify.Subject{Phase: verify.AfterCall}).Is())
	lost := verify.Subject{Phase: verify.Recovery, Output: json.RawMessage(`{"n":1}`)}
	require.Equal(t, verify.CannotTell, v(context.Background(), lost).Is())
}

// shelf is a ResourceView of texts. A resource that holds "!" cannot be read.
type shelf struct{ now, was map[string]string }

func (s shelf) read(from map[string]string, name string) (io.ReadCloser, error) {
	text, ok := from[name]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case text == "!":
		return nil, errors.New("it is locked")
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func (s shelf) Version(_ context.Context, name string) (string, error) {
	switch text, ok := s.now[name]; {
	case !ok:
		return "absent", nil
	case text == "!":
		return "", errors.New("it is locked")
	default:
		return "v:" + text, nil
	}
}

func (s shelf) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return s.read(s.now, name)
}

func (s shelf) Before(_ context.Context, name string) (io.ReadCloser, error) {
	return s.read(s.was, name)
}

func TestFileHas(t *testing.T) {
	v := verify.FileContent(func(in struct{ Content string }) (string, []byte) { return "f", []byte(in.Content) })
	file := func(text string) map[string]string { return map[string]string{"f": text} }
	for name, tc := range map[string]struct {
		world verify.ResourceView
		want  verify.Is
	}{
		"it has":                {shelf{now: file("new")}, verify.IsApplied},
		"it begins so":          {shelf{now: file("new and more")}, verify.IsPartial},
		"a beginning of it":     {shelf{now: file("ne")}, verify.IsPartial},
		"not there":             {shelf{}, verify.IsAbsent},
		"as before":             {shelf{now: file("old"), was: file("old")}, verify.IsAbsent},
		"neither":               {shelf{now: file("else"), was: file("old")}, verify.IsPartial},
		"longer than before":    {shelf{now: file("old and more"), was: file("old")}, verify.IsPartial},
		"cannot be read":        {shelf{now: file("!")}, verify.CannotTell},
		"before cannot be read": {shelf{now: file("else"), was: file("!")}, verify.CannotTell},
		"no world":              {nil, verify.CannotTell},
	} {
		got := v(context.Background(), verify.Subject{Phase: verify.Recovery, Input: json.RawMessage(`{"Content":"new"}`), Resources: tc.world})
		require.Equal(t, tc.want, got.Is(), name)
	}
	require.Equal(t, verify.CannotTell, v(context.Background(), verify.Subject{Input: json.RawMessage(`[]`), Resources: shelf{}}).Is())
}

func TestUnchanged(t *testing.T) {
	v := verify.Unchanged(func(in []string) []string { return in })
	world := shelf{now: map[string]string{"a": "1", "b": "2", "locked": "!"}}
	changes := []verify.Change{
		{Resource: "a", Before: "v:1", After: "v:2"},
		{Resource: "a", Before: "v:2", After: "v:1"},
		{Resource: "b", Before: "v:1", After: "v:2"},
		{Resource: "locked", Before: "v:1"},
		{Resource: "gone", Before: "v:1"},
	}
	for input, want := range map[string]verify.Is{
		`[]`: verify.IsApplied, `["other"]`: verify.IsApplied, `["a"]`: verify.IsApplied, `["a","b"]`: verify.IsPartial,
		`["gone"]`: verify.IsPartial, `["locked"]`: verify.CannotTell, `{}`: verify.CannotTell,
	} {
		got := v(context.Background(), verify.Subject{Input: json.RawMessage(input), Changes: changes, Resources: world})
		require.Equal(t, want, got.Is(), input)
	}
	none := v(context.Background(), verify.Subject{Input: json.RawMessage(`["b"]`), Changes: changes})
	require.Equal(t, verify.CannotTell, none.Is(), "without a world nothing can be told")
}
