package pipeline_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// TestResultsAreEncodedInTheGeneralForm compares both ways to encode a result,
// for texts alone and with each other field.
func TestResultsAreEncodedInTheGeneralForm(t *testing.T) {
	full := tool.Result{
		MediaType: "text/plain", JSON: json.RawMessage(`{"a":1}`), Parts: []tool.Part{{MediaType: "image/png", Data: []byte("x")}}, Meta: map[string]string{"a": "b"},
		Sources: []provenance.Reference{{Title: "a"}}, Labels: []string{"a"}, Requires: []string{"verify"}, IsError: true,
	}
	for _, text := range []string{"", "ok", "a\"\n\\", "\u2028é", "\xff"} {
		results := []tool.Result{{Text: text}}
		for i := range reflect.TypeFor[tool.Result]().NumField() {
			one := tool.Result{Text: text}
			if field := reflect.ValueOf(&one).Elem().Field(i); reflect.TypeFor[tool.Result]().Field(i).Name != "Text" {
				require.False(t, reflect.ValueOf(full).Field(i).IsZero(), "each field has a value")
				field.Set(reflect.ValueOf(full).Field(i))
			}
			results = append(results, one)
		}
		for _, r := range results {
			want, bad := canon.Marshal(r)
			got, err := pipeline.EncodeResult(r)
			require.Equal(t, bad == nil, err == nil)
			require.Equal(t, string(want), string(got))
		}
	}
}
