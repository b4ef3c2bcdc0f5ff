package schema_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/schema"
)

type tree struct {
	Name  string
	Below []*tree
	Seen  time.Time
	Raw   json.RawMessage
	By    map[string][4]int `json:",omitempty"`
}

type shown int

func (shown) MarshalText() ([]byte, error) { return []byte("x"), nil }

type pointed struct{}

func (*pointed) MarshalJSON() ([]byte, error) { return []byte("1"), nil }
func (*pointed) UnmarshalJSON([]byte) error   { return nil }

func TestRoundTrips(t *testing.T) {
	for _, ok := range []any{0, "", true, 1.5, tree{}, &tree{}, []byte{}, map[string]tree{}, big.Int{}} {
		if _, isBig := ok.(big.Int); isBig {
			continue // written only if it is addressable
		}
		require.NoError(t, schema.CheckRoundTrip(reflect.TypeOf(ok)), "%T", ok)
	}
	for _, bad := range []struct {
		value any
		says  string
	}{
		{struct{ A any }{}, "field A is the interface interface {}"},
		{struct{ A struct{ B []error } }{}, "field A.B[] is the interface error"},
		{struct{ a int }{}, "field a is not exported"},
		{struct {
			A int `json:"-"`
		}{}, "field A is left out"},
		{struct{ tree }{}, "field tree is not exported"},
		{struct{ Tree }{}, "field Tree is embedded"},
		{struct{ A, B chan int }{}, "field A is a chan"},
		{struct{ A func() }{}, "field A is a func"},
		{struct{ A complex128 }{}, "field A is a complex128"},
		{struct{ A map[int]string }{}, "field A has keys of type int"},
		{struct {
			A int
			B int `json:"a"`
		}{}, "field B has the JSON name of field A"},
		{struct{ A shown }{}, "field A writes itself"},
		{struct{ A map[string]pointed }{}, "field A{} writes itself"},
		{[]any{}, "the type []interface {}[] is the interface"},
	} {
		require.ErrorContains(t, schema.CheckRoundTrip(reflect.TypeOf(bad.value)), bad.says)
	}
}

// Tree is embedded by the test.
type Tree struct{ A int }
