# What the untrusted policy takes for content that others wrote, and for an
# effect. A session gets its labels from what it did; no rule takes one away.
package remit.untrusted

read if "untrusted" in input.session.labels

# The network and other servers return what others wrote. A tool that is tagged
# untrusted does, too.
brings if input.access.action == "connect"

brings if input.access.resource.kind == "mcp"

brings if "untrusted" in input.tool.tags

# A call that only looks, in the workspace or in a database, has no effect.
effect if {
	input.call.effect_class != "pure"
	not input.access.action in {"read", "list", "ask"}
}

effect if input.access.action in {"write", "delete", "execute", "connect", "use"}

# What a call says to others has left, whatever the call changes.
effect if input.access.resource.kind == "mcp"

effect if input.tool.destination in {"third_party", "model_chosen"}
