package callview

import (
	"strconv"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

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
		return oneLine(kind)
	}
}

// RevertOutcome returns the text of an outcome. The empty outcome is unknown.
func RevertOutcome(o effect.Outcome) string {
	if o == "" {
		return string(effect.Unknown)
	}
	return string(o)
}

// Resource formats a resource for people: the path of a file in the workspace,
// or the root and the path of another file.
func Resource(text string) string {
	r, err := perm.ParseResource(text)
	if err != nil {
		return oneLine(text)
	}
	f := r.Facts()
	switch {
	case f.Kind == "file" && f.Root == "workspace":
		return fileWords(f.Path)
	case f.Kind == "file":
		return fileWords(f.Root + ":" + f.Path)
	default:
		return oneLine(text)
	}
}

// fileWords quotes a file name that contains line ends. A space in their place
// would show another name.
func fileWords(name string) string {
	if strings.ContainsAny(name, "\n\r") {
		return strconv.Quote(name)
	}
	return oneLine(name)
}
