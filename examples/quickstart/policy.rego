# What the agent of the quick start may do. Every sentence here is a reason that
# somebody reads later, in an answer, in the log or in an error.
package remit

allow contains "files of the workspace may be read" if {
	input.access.resource.root == "workspace"
	input.access.action in {"read", "list"}
}

allow contains "files may be changed, because every change can be taken back" if {
	input.access.resource.root == "workspace"
	input.access.action in {"write", "delete"}
	input.call.effect_class == "reversible"
}

# A denial wins over everything that allows.
deny contains "the customer list stays private" if {
	input.access.resource.name == "customers.csv"
}

hint contains "ask the shop owner for numbers about customers" if {
	input.access.resource.name == "customers.csv"
}

# Looked at after the call: an element here means that the call did not do what
# it should, and it is taken back by itself.
ensure contains "a config file that is written keeps its line \"Maintained by\"" if {
	input.purpose == "verify"
	input.tool.name == "file_write"
	input.access.resource.segments[0] == "config"
	not contains(input.call.args.content, "Maintained by:")
}
