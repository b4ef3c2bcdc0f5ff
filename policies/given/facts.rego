# What the given policy takes for leaving, and for a URL that the model made up.
package remit.given

# A look leaves as well: an address can carry what was read. What a tool of a
# configured service is told goes there and nowhere else.
leaves if {
	goes_out
	input.tool.destination != "configured"
}

goes_out if input.access.action == "connect"

goes_out if input.access.resource.kind == "mcp"

goes_out if input.tool.destination in {"third_party", "model_chosen"}

# Nobody looked which URLs the call names: nothing is taken for given.
made_up if not input.call.urls

made_up if {
	some url in input.call.urls
	not url.given
}

# The call goes to a place that it names otherwise than by a URL.
made_up if {
	input.access.given == false
	not redirected
}

# Where a given URL sends a request on is the choice of who answers.
redirected if {
	input.access.dynamic
	count(input.call.urls) > 0
}
