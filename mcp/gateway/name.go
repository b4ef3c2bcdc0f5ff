package gateway

import (
	"regexp"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// part stands between a server's name and that of its tool.
const part = "__"

// mcpName is what clients know a tool by. It can be told apart into server and tool again: no server's name holds the part
// or ends like its beginning.
func mcpName(server, tool string) string { return server + part + tool }

// upstreamOK are the names that the protocol takes. A server may give others; no client could be shown those safely.
var upstreamOK = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

var noName = regexp.MustCompile(`[^a-z0-9_]|_{3,}`)

const longest = 64 // of a name in a runtime

// toolName is the name in a runtime, whose names are stricter: in lower case, of letters, digits and single or double _.
// Two tools can come to the same one; then both are refused.
func toolName(server, tool string) string {
	name := word(server) + part + word(tool)
	if name[0] >= '0' && name[0] <= '9' {
		name = "s" + name
	}
	if len(name) <= longest {
		return name
	}
	sum := string(canon.SumBytes([]byte(mcpName(server, tool))))
	return strings.TrimRight(name[:longest-10], "_") + "_" + sum[len(sum)-8:]
}

// readerName is the name of the runtime's tool that reads what a server has beside its tools. What parts it twice is in no tool's name.
func readerName(server, verb string) string {
	name := toolName(server, "mcp")
	if most := longest - len(part+verb); len(name) > most {
		sum := string(canon.SumBytes([]byte(server)))
		name = strings.TrimRight(name[:most-10], "_") + "_" + sum[len(sum)-8:]
	}
	return name + part + verb
}

// word is a name without what a runtime's names cannot have.
func word(name string) string {
	w := strings.Trim(noName.ReplaceAllString(strings.ToLower(name), "_"), "_")
	for strings.Contains(w, part) {
		w = strings.ReplaceAll(w, part, "_")
	}
	if w == "" {
		return "x"
	}
	return w
}
