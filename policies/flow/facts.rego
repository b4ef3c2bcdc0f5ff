# What the flow policy takes for untrusted, private and leaving. A session gets
# its labels from what it did; they are never taken away.
package remit.flow

untrusted if "untrusted" in input.session.labels

private if "private" in input.session.labels

# Whatever comes from the network or from a server of tools was written by
# others, and what a tool says of itself counts too.
brings_untrusted if input.access.action == "connect"

brings_untrusted if input.access.resource.kind == "mcp"

brings_untrusted if "untrusted" in input.tool.tags

reads_private if {
	input.access.action == "read"
	input.access.resource.kind in {"file", "db"}
}

reads_private if input.access.action == "use"

reads_private if "private" in input.tool.tags

# A look leaves as well: an address can carry what was read.
leaves if input.access.action == "connect"

leaves if input.access.resource.kind == "mcp"

leaves if input.tool.destination in {"third_party", "model_chosen"}

# A destination that the tool does not tell is not taken for a configured one.
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
