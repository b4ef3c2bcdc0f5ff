package record_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/record"
)

// TestBodiesAreWrittenInTheGeneralForm fills every field of every kind with
// random values, and compares the written body with the general form, also for
// values that cannot be written.
func TestBodiesAreWrittenInTheGeneralForm(t *testing.T) {
	for _, kind := range record.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				body, err := record.NewBody(kind)
				require.NoError(t, err)
				fillRandomly(t, reflect.ValueOf(body).Elem(), 3)
				want, bad := canon.Marshal(body)
				got, err := record.AppendBody([]byte("before"), body)
				require.Equal(t, bad == nil, err == nil)
				require.Equal(t, "before"+string(want), string(got))
			})
		})
	}
}

// FuzzAppendedBody compares the two forms for bodies that were read.
func FuzzAppendedBody(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(string(v.Header.Kind), []byte(v.CanonicalBody))
	}
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		body, err := record.NewBody(record.Kind(kind))
		if err != nil || canon.Decode(text, body) != nil {
			return
		}
		want, bad := canon.Marshal(body)
		got, err := record.AppendBody(nil, body)
		require.Equal(t, bad == nil, err == nil)
		require.Equal(t, string(want), string(got))
	})
}

var someTexts = rapid.SampledFrom([]string{"", "", "a", "tool://look", "é\"\\\n<>&", "\u2028", "\xff"})

var someRaws = rapid.SampledFrom([]string{"", "null", "{}", `{"a":1,"b":[true,"x"]}`, ` {"b":1.0,"a":"é"} `, "{", `{"a":1,"a":2}`, "1e2"})

// fillRandomly sets a value and all that it holds. Half of the fields stay empty.
func fillRandomly(t *rapid.T, v reflect.Value, depth int) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		if text := someRaws.Draw(t, "raw"); text != "" {
			v.SetBytes([]byte(text))
		}
		return
	case v.Kind() != reflect.Struct && rapid.Bool().Draw(t, "empty"), depth == 0:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(someTexts.Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "number"))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillRandomly(t, v.Field(i), depth)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillRandomly(t, v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(t, "length"), 2))
		for i := range v.Len() {
			fillRandomly(t, v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if v.Type().Elem().Kind() == reflect.String {
			v.SetMapIndex(reflect.ValueOf(someTexts.Draw(t, "name")), reflect.ValueOf("7").Convert(v.Type().Elem()))
		}
	default:
	}
}
