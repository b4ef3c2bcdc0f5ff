package naming

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/suggest"
)

// Separator separates the name of a server from that of its tool.
const Separator = "__"

// ForClients returns the name by which clients know a tool. It splits
// unambiguously: no server's name contains the separator or ends with its
// start.
func ForClients(server, tool string) string { return server + Separator + tool }

// Permitted reports whether the protocol permits a name. A server can use
// others, but clients could not show those safely.
func Permitted(name string) bool { return permitted().MatchString(name) }

// Expressions are compiled at their first use: most commands need none of them.
var permitted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
})

var noName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^a-z0-9_]|_{3,}`)
})

const (
	longest        = 64      // longest name of a runtime tool
	maxMessageText = 4 << 10 // bytes of a message with known names
)

// ForRuntime returns the name in the runtime, whose names are stricter:
// lower-case letters, digits and single or double _. If two tools get the same
// name, the gateway rejects both.
func ForRuntime(server, tool string) string {
	name := word(server) + Separator + word(tool)
	if name[0] >= '0' && name[0] <= '9' {
		name = "s" + name
	}
	if len(name) <= longest {
		return name
	}
	sum := string(canon.SumBytes([]byte(ForClients(server, tool))))
	return strings.TrimRight(name[:longest-10], "_") + "_" + sum[len(sum)-8:]
}

// Reader returns the name of the catalog tool of a server. No name of a
// tool contains its separator twice.
func Reader(server, verb string) string {
	name := ForRuntime(server, "mcp")
	if most := longest - len(Separator+verb); len(name) > most {
		sum := string(canon.SumBytes([]byte(server)))
		name = strings.TrimRight(name[:most-10], "_") + "_" + sum[len(sum)-8:]
	}
	return name + Separator + verb
}

// word returns a name without the characters that runtime names cannot have.
func word(name string) string {
	w := strings.Trim(noName().ReplaceAllString(strings.ToLower(name), "_"), "_")
	for strings.Contains(w, Separator) {
		w = strings.ReplaceAll(w, Separator, "_")
	}
	if w == "" {
		return "x"
	}
	return w
}

// ToolPattern returns a pattern of the runtime names of all tools of a server.
func ToolPattern(server string) string {
	name := ForRuntime(server, "x")
	return name[:len(name)-1] + "*"
}

// Likeness returns the same text for names that a reader could confuse.
func Likeness(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
}

// Unknown returns a message about an unknown name, with the known ones.
func Unknown(what, name, whose string, known []string) string {
	text := fmt.Sprintf("there is no %s %q of %s", what, name, whose)
	if near := suggest.Name(name, known); near != "" {
		return canon.Printable(text+"; did you mean "+strconv.Quote(near)+"?", maxMessageText)
	}
	slices.Sort(known)
	if len(known) > 0 {
		text += "; valid are " + strings.Join(known, ", ")
	}
	return canon.Printable(text, maxMessageText)
}
