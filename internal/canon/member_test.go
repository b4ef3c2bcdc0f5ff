package canon_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/canon"
)

// TestMemberIsWhatADecoderFinds compares Member with encoding/json, for objects
// whose texts hold quotes, brackets and backslashes.
func TestMemberIsWhatADecoderFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab\"\\{}[],:\n\u0001ü")))
		names := rapid.SampledFrom([]string{"", "a", "b", "text", "json", "a\"", "a\\", "{"})
		var value func(depth int) *rapid.Generator[any]
		value = func(depth int) *rapid.Generator[any] {
			of := []*rapid.Generator[any]{text.AsAny(), rapid.IntRange(-9, 99).AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil)}
			if depth > 0 {
				of = append(of, rapid.SliceOfN(value(depth-1), 0, 3).AsAny(), rapid.MapOfN(names, value(depth-1), 0, 3).AsAny())
			}
			return rapid.OneOf(of...)
		}
		object, err := canon.Marshal(rapid.MapOfN(names, value(3), 0, 5).Draw(t, "object"))
		require.NoError(t, err)
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(object, &want))
		for _, name := range []string{"", "a", "b", "text", "json", "{", "none"} {
			require.Equal(t, string(want[name]), string(canon.Member(object, name)), "%s of %s", name, object)
		}
	})
	for _, other := range []string{``, `{}`, `[]`, `"text"`, `null`, `7`} {
		require.Nil(t, canon.Member([]byte(other), "text"), other)
	}
	one := []byte(`{"a":1,"b":2}`)
	_ = append(canon.Member(one, "a"), 'x')
	require.Equal(t, `{"a":1,"b":2}`, string(one), "to append to a member does not change the object")
}
