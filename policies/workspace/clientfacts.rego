# The files that determine what the client of an agent starts, as its user and outside
# every sandbox.
package remit.workspace.clients

import data.remit.workspace.paths

file if ".mcp.json" in paths.names

file if {
	some pair in pairs
	pair[1] in paths.names
	some i, name in paths.segments
	trim_right(name, ". ") == pair[0]
	trim_right(paths.segments[i + 1], ". ") == pair[1]
}

pairs := {
	[".claude", "settings.json"], [".claude", "settings.local.json"], [".codex", "config.toml"],
	[".cursor", "mcp.json"], [".gemini", "settings.json"], [".vscode", "mcp.json"],
}
