# An agent may only read: for reviews, for questions, for agents without
# supervision. Nothing needs approval, because nothing is allowed that could.
package remit

import data.remit.workspace.paths

allow contains "files of the workspace may be read and listed" if {
	paths.inside
	input.access.action in {"read", "list"}
}

allow contains "a call without effects may run" if {
	input.access.action == "call"
	input.access.resource.kind == "tool"
	input.call.effect_class == "pure"
}

deny contains "this policy permits no changes" if input.access.action in {"write", "delete"}

deny contains "this policy permits no programs, network access or use of secrets" if {
	input.access.action in {"execute", "connect", "use"}
}

deny contains "this policy permits no tools with effects" if input.call.effect_class != "pure"

deny contains "the history of the repository is out of reach" if paths.git

deny contains "files that usually hold secrets are out of reach" if paths.secret

mask contains pattern if some pattern in paths.masked

hint contains "only the root workspace can be looked at" if {
	input.access.resource.kind == "file"
	not paths.inside
}

hint contains "look and answer; say what you would change instead of changing it" if {
	input.access.action in {"write", "delete", "execute", "connect", "use"}
}

hint contains "use tools whose effect class is pure" if input.call.effect_class != "pure"
