package main

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

// FuzzScriptLine: a line that is taken does one thing, says the same when it is written
// anew, whatever the order of its keys, and every refusal says how to mend it.
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

// namedTwice reports whether a line says one thing of a step twice. What stands in
// arguments the tool's own admission judges.
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

// written is a step as a script says it.
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

// FuzzScript: the lines of a script are those that are not blank, each under its own
// number, however the bytes come in.
func FuzzScript(f *testing.F) {
	f.Add([]byte("a\n\n b \r\nc"), uint8(1))
	f.Add([]byte("\n\n\n"), uint8(3))
	f.Add([]byte{}, uint8(0))
	f.Add(bytes.Repeat([]byte("x"), 5000), uint8(255))
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		done := make(chan struct{})
		defer close(done)
		var got []line
		for l := range readLines(&pieces{rest: text, size: int(piece) + 1}, done) {
			got = append(got, l)
		}
		var want []line
		for i, l := range bytes.Split(text, []byte("\n")) {
			if l = bytes.TrimSpace(l); len(l) > 0 {
				want = append(want, line{n: i + 1, text: l})
			}
		}
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.Equal(t, want[i].n, got[i].n)
			require.Equal(t, string(want[i].text), string(got[i].text))
		}
	})
}

// pieces is read a few bytes at a time.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(to []byte) (int, error) {
	n := min(p.size, len(p.rest), len(to))
	copy(to, p.rest[:n])
	p.rest = p.rest[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// FuzzPolicyInput: an input of a policy that is taken is one that remit itself would
// give: written and read again it is the same, and it names what is to be decided.
func FuzzPolicyInput(f *testing.F) {
	_, sample, _ := strings.Cut(sampleInput, "<<'END'\n")
	sample = strings.TrimSuffix(sample, "END")
	f.Add([]byte(sample))
	for _, change := range [][2]string{
		{`"run"`, `"delete"`},
		{`"write"`, `"Write"`},
		{`"id": "c_1"`, `"ID": "c_1"`},
		{`"index": 0`, `"index": 1e400`},
		{`"roles": []`, `"roles": [], "roles": []`},
		{`"2026-01-02T03:04:05Z"`, `"2026-02-30T03:04:05Z"`},
		{`"calls": 0`, `"calls": 99999999999999999999`},
		{`"dynamic": false`, `"dynamic": 0`},
	} {
		f.Add([]byte(strings.Replace(sample, change[0], change[1], 1)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRequest(text)
		if err != nil {
			require.NotContains(t, err.Error(), "perm.", "no Go type is shown to people")
			return
		}
		require.NotEmpty(t, r.Access.Action)
		require.NotEmpty(t, r.Tool.Name)
		first, err := json.Marshal(r)
		require.NoError(t, err)
		again, err := parseRequest(first)
		if err != nil {
			return // what was left out may not be there empty
		}
		second, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(first), string(second))
	})
}
