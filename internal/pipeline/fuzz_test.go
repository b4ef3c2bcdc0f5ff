package pipeline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
)

// FuzzRedact: what a pointer names goes, and stays gone; all that is beside it stays as
// it was; a pointer to nothing changes nothing.
func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"a":{"b":"secret"},"c":1}`), "/args/a/b")
	f.Add([]byte(`{"a/b":["x",{"~":"secret"}]}`), "/args/a~1b/1/~0")
	f.Add([]byte(`["a"]`), "/args/00")
	f.Add([]byte(`"secret"`), "/args")
	f.Add([]byte(`{"":1}`), "/args/")
	f.Add([]byte(`{"a":1e400}`), "/output/a")
	f.Add([]byte(`[1`), "/args/0")
	f.Fuzz(func(t *testing.T, doc []byte, pointer string) {
		input, err := canon.Canonicalize(doc, canon.DefaultLimits())
		if err != nil {
			return
		}
		v := &redaction{input: input}
		require.Equal(t, string(input), string(v.shownInput()), "nothing is hidden yet")
		v.add([]string{pointer})
		shown := v.shownInput()
		require.True(t, json.Valid(shown))
		again := &redaction{input: shown, pointers: v.pointers}
		require.Equal(t, string(shown), string(again.shownInput()), "twice is once")
		value, there := slowAt(input, pointer)
		require.Equal(t, there, v.hidesInput())
		if !there {
			require.Equal(t, string(input), string(shown))
			return
		}
		left, still := slowAt(shown, pointer)
		require.True(t, still)
		require.Equal(t, `"`+hiddenText+`"`, string(left))
		// Put back, it is the document that it was.
		back := bytes.Replace(shown, left, value, 1)
		if bytes.Count(shown, left) == 1 {
			require.Equal(t, string(input), string(back))
		}
	})
}

// slowAt finds a value by a pointer, member by member, in the bytes.
func slowAt(doc []byte, pointer string) (json.RawMessage, bool) {
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[0]) != "args" {
		return nil, false
	}
	at := json.RawMessage(doc)
	for _, step := range steps[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var members map[string]json.RawMessage
		var items []json.RawMessage
		switch {
		case at[0] == '{' && json.Unmarshal(at, &members) == nil:
			next, ok := members[step]
			if !ok {
				return nil, false
			}
			at = next
		case at[0] == '[' && json.Unmarshal(at, &items) == nil:
			i := strings.Index(strings.Join(numbersTo(len(items)), "")+",", ","+step+",")
			if i < 0 || step == "" || strings.Contains(step, ",") {
				return nil, false
			}
			at = items[strings.Count(strings.Join(numbersTo(len(items)), "")[:i], ",")]
		default:
			return nil, false
		}
	}
	return at, true
}

func numbersTo(n int) (all []string) {
	for i := range n {
		text, _ := json.Marshal(i)
		all = append(all, ","+string(text))
	}
	return all
}
