package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// TestShortValues: a short value is taken out where it stands by itself, and leaves the words alone that hold it by
// chance; a longer one is taken out wherever it stands.
func TestShortValues(t *testing.T) {
	v := &redaction{input: []byte(`{"a":"in","b":"10","c":"swordfish"}`), pointers: []string{"/args/a", "/args/b", "/args/c"}}
	require.Equal(t, "nothing within 100 lines, PIN"+hiddenText+" "+hiddenText, v.text("nothing within 100 lines, PIN10 in"))
	require.Equal(t, "x"+hiddenText+"x", v.text("xswordfishx"))
	o := tool.Outcome{Text: "calls are limited: 1 call a minute, to swordfish"}
	require.Equal(t, "calls are limited: 1 ‹a› a minute, to ‹c›", textWithout(&o, []byte(`{"a":"call","b":"to","c":"swordfish"}`)).Text)
}
