package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// Changes formats the first three changes, and counts the others.
func Changes(changes []tool.Change) string {
	var words []string
	for i, c := range changes {
		if i == 3 {
			words = append(words, fmt.Sprintf("%d more", len(changes)-i))
			break
		}
		words = append(words, callview.ChangeVerb(c.Kind)+" "+callview.Resource(c.Resource))
	}
	return strings.Join(words, ", ")
}

// Remaining lists the resources that are not reverted, with the reasons.
func Remaining(p cli.Style, w io.Writer, rs []effect.Result) {
	for _, r := range rs {
		if !r.Outcome.Clean() {
			_, _ = fmt.Fprintf(w, "     %s %s: %s\n", p.Bad(callview.RevertOutcome(r.Outcome)), callview.Resource(r.Resource), cli.Printable(r.Why))
		}
	}
}
