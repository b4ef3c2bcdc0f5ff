# The facts of the given policy: leaving, and URLs that the model made up.
package remit.user_provided

# A read can leave as well, because an address can carry data. The arguments of a
# tool of a configured service go only there.
leaves if {
	goes_out
	input.tool.destination != "configured"
}

goes_out if input.access.action == "connect"

goes_out if input.access.resource.kind == "mcp"

goes_out if input.tool.destination in {"third_party", "model_chosen"}

# The URLs of the call are unknown: none counts as user-provided.
made_up if not input.call.urls

made_up if {
	some url in input.call.urls
	not url.user_provided
}

# The call does not name its destination by a URL.
made_up if {
	input.access.user_provided == false
	not redirected
}

# The server at a user-provided URL chooses its redirects.
redirected if {
	input.access.dynamic
	count(input.call.urls) > 0
}
