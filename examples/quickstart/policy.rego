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

# A program runs in the sandbox; each path that it changes is asked for.
allow contains "programs may run in the sandbox" if {
	input.access.action == "execute"
	input.tool.confinement == "sandbox"
}

# Looked at after the call: an element here means that the call did not do what
# it should, and it is taken back by itself. The rule reads what each changed file
# holds now, so it holds for every tool, and for programs.
ensure contains "a config file keeps its line \"Maintained by\"" if {
	some change in input.changes
	change.resource.segments[0] == "config"
	change.resource.ext == ".ini"
	change.after
	not contains(change.text, "Maintained by:")
}
