# The facts of the untrusted policy: untrusted content, and effects. A session gets
# its labels from its calls. No rule removes one.
package remit.untrusted

read if "untrusted" in input.session.labels

# The network and other servers return untrusted content. So does a tool with the
# tag untrusted.
brings if input.access.action == "connect"

brings if input.access.resource.kind == "mcp"

brings if "untrusted" in input.tool.tags

# A call that only reads, in the workspace or in a database, has no effect.
effect if {
	input.call.effect_class != "pure"
	not input.access.action in {"read", "list", "ask"}
}

effect if input.access.action in {"write", "delete", "execute", "connect", "use"}

# The arguments of a call to others have left, for any effect class.
effect if input.access.resource.kind == "mcp"

effect if input.tool.destination in {"third_party", "model_chosen"}
