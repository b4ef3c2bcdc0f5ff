package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
)

// FuzzScriptLine: an accepted line sets one member of a step and stays the same
// if it is written again, with its keys in any order. Each rejection has a fix.
func FuzzScriptLine(f *testing.F) {
	for _, seed := range []string{
		`{"tool":"file_write","args":{"path":"a.txt","content":"hi"}}`, `{"args":"text","tool":"x"}`, `{"parallel":[{"tool":"a"},{"tool":"b","args":null}]}`,
		`{"savepoint":"a"}`, `{"revert_to":"a"}`, `{"commit":true}`, `{"revert":true}`, `{"commit":false}`, `{"tool":"a","tool":"b"}`, `{"Tool":"a"}`,
		`{"tool":"a","commit":true}`, `{"parallel":[]}`, `{"tool":"a"} {"tool":"b"}`, `{"tool":"a"`, `{"tool":"\ud800"}`, `{"savepoint":""}`, `[]`, `{"parallel":null}`,
		`{"tool":"a\u0000"}`, "\xef\xbb\xbf{}", `{"tool":"a","args":{"x":1,"x":2}}`, `{"commit": true }`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStep(text)
		if err != nil {
			var bad *stepError
			require.ErrorAs(t, err, &bad)
			require.NotEmpty(t, bad.fix)
			return
		}
		parts := 0
		for _, there := range []bool{len(s.calls) > 0, s.savepoint != "", s.revertTo != "", s.end != ""} {
			if there {
				parts++
			}
		}
		require.Equal(t, 1, parts)
		for _, c := range s.calls {
			require.NotEmpty(t, c.tool)
			require.True(t, c.args == nil || json.Valid(c.args))
		}
		for _, argsFirst := range []bool{false, true} {
			again, err := parseStep(written(t, s, argsFirst))
			require.NoError(t, err, "%s", written(t, s, argsFirst))
			require.Equal(t, s, again)
		}
		require.False(t, namedTwice(t, text), "the second would have counted, or the first")
		_, err = parseStep(append(bytes.Clone(text), text...))
		require.Error(t, err, "two steps in one line")
	})
}

// namedTwice reports whether a line repeats a key of a step. The tool checks
// the keys inside arguments.
func namedTwice(t *testing.T, text []byte) bool {
	t.Helper()
	in := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	said := map[string]bool{}
	for {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return false
		}
		require.NoError(t, err)
		if kind, read := in.StackIndex(in.StackDepth()); kind != '{' || read%2 == 0 || token.Kind() != '"' {
			continue // no name
		}
		at := string(in.StackPointer())
		if said[at] {
			return true
		}
		said[at] = true
		if token.String() == "args" {
			require.NoError(t, in.SkipValue())
		}
	}
}

// written returns a step as a line of a script.
func written(t *testing.T, s step, argsFirst bool) []byte {
	t.Helper()
	quoted := func(text string) string {
		out, err := canon.Marshal(text)
		require.NoError(t, err)
		return string(out)
	}
	one := func(c call) string {
		tool := `"tool":` + quoted(c.tool)
		switch {
		case c.args == nil:
			return "{" + tool + "}"
		case argsFirst:
			return `{"args":` + string(c.args) + "," + tool + "}"
		default:
			return "{" + tool + `,"args":` + string(c.args) + "}"
		}
	}
	switch {
	case s.end != "":
		return []byte(`{"` + s.end + `":true}`)
	case s.savepoint != "":
		return []byte(`{"savepoint":` + quoted(s.savepoint) + "}")
	case s.revertTo != "":
		return []byte(`{"revert_to":` + quoted(s.revertTo) + "}")
	case len(s.calls) == 1:
		return []byte(one(s.calls[0]))
	}
	var all []string
	for _, c := range s.calls {
		all = append(all, one(c))
	}
	return []byte(`{"parallel":[` + strings.Join(all, ",") + "]}")
}

func TestKeyThatWasMeant(t *testing.T) {
	_, err := parseStep([]byte(`{"tool":"x","arg":{}}`))
	var bad *stepError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, `key "arg" is not known`, bad.why)
	require.True(t, strings.HasPrefix(bad.fix, `did you mean "args"? valid are tool,`), bad.fix)
}
