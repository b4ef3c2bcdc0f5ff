package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm"
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
		words = append(words, ChangeVerb(c.Kind)+" "+Resource(c.Resource))
	}
	return strings.Join(words, ", ")
}

// ChangeVerb returns the past tense for a kind of change.
func ChangeVerb(kind string) string {
	switch kind {
	case "create":
		return "created"
	case "write":
		return "changed"
	case "delete":
		return "deleted"
	case "mkdir":
		return "made folder"
	default:
		return cli.Printable(kind)
	}
}

// RevertOutcome returns the text of an outcome. The empty outcome is unknown.
func RevertOutcome(o effect.Outcome) string {
	if o == "" {
		return string(effect.Unknown)
	}
	return string(o)
}

// Remaining lists the resources that are not reverted, with the reasons.
func Remaining(p cli.Style, w io.Writer, rs []effect.Result) {
	for _, r := range rs {
		if !r.Outcome.Clean() {
			_, _ = fmt.Fprintf(w, "     %s %s: %s\n", p.Bad(RevertOutcome(r.Outcome)), Resource(r.Resource), cli.Printable(r.Why))
		}
	}
}

// Resource formats a resource for people: the path of a file in the workspace,
// or the root and the path of another file.
func Resource(text string) string {
	r, err := perm.ParseResource(text)
	if err != nil {
		return cli.Printable(text)
	}
	f := r.Facts()
	switch {
	case f.Kind == "file" && f.Root == "workspace":
		return fileWords(f.Path)
	case f.Kind == "file":
		return fileWords(f.Root + ":" + f.Path)
	default:
		return cli.Printable(text)
	}
}

// fileWords quotes a file name that contains line ends. A space in their place
// would show another name.
func fileWords(name string) string {
	if strings.ContainsAny(name, "\n\r") {
		return strconv.Quote(name)
	}
	return cli.Printable(name)
}
