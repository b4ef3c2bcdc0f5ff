package gateway

import (
	"regexp"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// part separates the name of a server from that of its tool.
const part = "__"

// mcpName returns the name by which clients know a tool. It splits
// unambiguously: no server's name contains the separator or ends with its
// start.
func mcpName(server, tool string) string { return server + part + tool }

// upstreamOK matches the names that the protocol permits. A server can use
// others, but clients could not show those safely.
var upstreamOK = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

var noName = regexp.MustCompile(`[^a-z0-9_]|_{3,}`)

const longest = 64 // longest name of a runtime tool

// toolName returns the name in the runtime, whose names are stricter:
// lower-case letters, digits and single or double _. If two tools get the same
// name, the gateway rejects both.
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

// readerName returns the name of the catalog tool of a server. No name of a
// tool contains its separator twice.
func readerName(server, verb string) string {
	name := toolName(server, "mcp")
	if most := longest - len(part+verb); len(name) > most {
		sum := string(canon.SumBytes([]byte(server)))
		name = strings.TrimRight(name[:most-10], "_") + "_" + sum[len(sum)-8:]
	}
	return name + part + verb
}

// word returns a name without the characters that runtime names cannot have.
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
