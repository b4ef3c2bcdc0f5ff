# The permissions of the agent of the quick start. Every sentence here is a reason
# that people read later, in a result, in the log or in an error.
package remit

allow contains "files of the workspace may be read" if {
	input.access.resource.root == "workspace"
	input.access.action in {"read", "list"}
}

allow contains "files may be changed, because every change can be reverted" if {
	input.access.resource.root == "workspace"
	input.access.action in {"write", "delete"}
	input.call.effect_class == "reversible"
}

# A denial takes precedence over every allow.
deny contains "the customer list stays private" if {
	input.access.resource.name == "customers.csv"
}

hint contains "ask the shop owner for numbers about customers" if {
	input.access.resource.name == "customers.csv"
}

# A program runs in the sandbox; the policy decides each path that it changes.
allow contains "programs may run in the sandbox" if {
	input.access.action == "execute"
	input.tool.confinement == "sandbox"
}

# Evaluated after the call: an element here means that the call violated the rule,
# and the runtime reverts it. The rule reads the current content of each changed
# file, so it covers every tool, and programs.
ensure contains "a config file keeps its line \"Maintained by\"" if {
	some change in input.changes
	change.resource.segments[0] == "config"
	change.resource.ext == ".ini"
	change.after
	not contains(change.text, "Maintained by:")
}
