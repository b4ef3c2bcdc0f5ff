# The facts of the flow policy: untrusted, private and leaving. A session gets its
# labels from its calls. They are never removed.
package remit.flow

untrusted if "untrusted" in input.session.labels

private if "private" in input.session.labels

# Content from the network or from an MCP server is untrusted. The tags of a tool
# count too.
brings_untrusted if input.access.action == "connect"

brings_untrusted if input.access.resource.kind == "mcp"

brings_untrusted if "untrusted" in input.tool.tags

reads_private if {
	input.access.action == "read"
	input.access.resource.kind in {"file", "db"}
}

reads_private if input.access.action == "use"

reads_private if "private" in input.tool.tags

# A read can leave as well, because an address can carry data.
leaves if input.access.action == "connect"

leaves if input.access.resource.kind == "mcp"

leaves if input.tool.destination in {"third_party", "model_chosen"}

# An undeclared destination does not count as configured.
configured if input.tool.destination == "configured"

names_private if {
	walk(input.call.args, [_, value])
	is_string(value)
	strings.any_prefix_match(lower(value), {"file:", "secret:", "db:"})
}

names_private if {
	walk(input.call.args, [path, _])
	some name in path
	is_string(name)
	lower(name) in {"path", "paths", "file", "files", "filename", "attachment", "attachments"}
}
