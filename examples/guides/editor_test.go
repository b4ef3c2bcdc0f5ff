package guides_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEditor checks that remit policy check writes what the page shows, and that
// the pattern of the page finds the mistake in it.
func TestEditor(t *testing.T) {
	shell(t)
	p := newPlace(t)
	p.write("policy/shop.rego", "package remit\n\nallow contains \"x\" if {\n\tinput.call.nme == \"file_write\"\n}\n")
	shown := take(t, "guides/editor.md", "text", 0)
	out := p.sh(5, "remit policy check policy --tools")
	require.Contains(t, out, strings.TrimSpace(shown))
	var task struct {
		Command        string
		ProblemMatcher struct {
			Pattern struct {
				Regexp                      string
				Message, File, Line, Column int
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(take(t, "guides/editor.md", "json", 0)), &task))
	require.Equal(t, "remit policy check policy --tools", task.Command)
	pattern := task.ProblemMatcher.Pattern
	found := regexp.MustCompile("(?m)" + pattern.Regexp).FindStringSubmatch(out)
	require.NotNil(t, found, out)
	require.Equal(t, []string{"undefined ref: input.call.nme", "policy/shop.rego", "4", "2"}, []string{found[pattern.Message], found[pattern.File], found[pattern.Line], found[pattern.Column]})
}
