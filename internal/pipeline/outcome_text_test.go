package pipeline

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// TestTextForModel checks the texts of outcomes.md.
func TestTextForModel(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/outcomes.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n## Text for the model\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	documented := map[tool.Status]string{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) == 2 {
			documented[tool.Status(strings.Trim(cells[0], "| `"))] = strings.TrimSuffix(strings.TrimSpace(cells[1]), " |")
		}
	}
	for _, s := range tool.Statuses() {
		o := tool.Outcome{Status: s, Stage: "policy", Reverted: "all"}
		switch s {
		case tool.StatusDone:
			o.Result.Text = "the text of the result; if there is none, its JSON"
		case tool.StatusInvalid, tool.StatusFailed:
			o.Error = &tool.Problem{Why: "WHY"}
		case tool.StatusDenied:
			o.Decision = &perm.DecisionRecord{
				Effect: perm.Deny.String(), Hints: []string{"HINTS"},
				Reasons: []perm.Reason{{Text: "REASONS", At: "policy.rego:17", Set: "deny"}},
			}
		case tool.StatusTimeout:
			o.Stage = "tool"
		default: // its text says all
		}
		// Each text of an author ends as a sentence.
		text := withText(o).Text
		for _, word := range []string{"WHY", "REASONS", "HINTS"} {
			text = strings.ReplaceAll(text, word+".", word)
		}
		require.Equal(t, documented[s], text, s)
	}
}
