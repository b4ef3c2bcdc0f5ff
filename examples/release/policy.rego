# The permissions of the agent that prepares releases. Most calls are allowed for
# one reason: they can be reverted.
package remit

allow contains "the workspace may be read" if {
	input.access.resource.kind == "file"
	input.access.action in {"read", "list"}
}

# The policy decides each path that a program changed, those in .git among them.
allow contains "files may be changed and programs run, since files are put back" if {
	input.call.effect_class == "reversible"
	input.access.resource.kind in {"file", "exec"}
}

# The policy decides the call, and while it runs each table that its statement uses.
allow contains "sql_execute may be called" if input.access.resource.name == "sql_execute"

allow contains "the tables of a release may be changed, since rows are put back" if {
	input.call.effect_class == "reversible"
	input.access.resource.kind == "db"
	input.access.resource.table in {"packages", "releases", "drafts", "history"}
}

allow contains "the download site may be changed by calls that say how they are reverted" if {
	input.access.action == "connect"
	input.call.effect_class == "compensable"
}

allow contains "the team may be told, although nothing reverts that" if input.tool.name == "team_tell"

# A deferrable call has no effect before the commit.
hold contains "mail leaves with the commit" if input.call.effect_class == "deferrable"

deny contains "only a person changes who may release" if input.access.resource.name == "MAINTAINERS"
