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

// Changes names the first changes.
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

func RevertOutcome(o effect.Outcome) string {
	if o == "" {
		return string(effect.Unknown)
	}
	return string(o)
}

func Remaining(p cli.Style, w io.Writer, rs []effect.Result) {
	for _, r := range rs {
		if !r.Outcome.Clean() {
			_, _ = fmt.Fprintf(w, "     %s %s: %s\n", p.Bad(RevertOutcome(r.Outcome)), Resource(r.Resource), cli.Printable(r.Why))
		}
	}
}

// Resource is a resource as people name it: a file of the workspace by its
// path, one of another root with the root in front.
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

// fileWords is a name as it is, or in quotes if it has ends of lines: a name with a space is
// another one.
func fileWords(name string) string {
	if strings.ContainsAny(name, "\n\r") {
		return strconv.Quote(name)
	}
	return cli.Printable(name)
}
