# What the agent that prepares releases may do. Most of it is allowed for one
# reason: it can be taken back.
package remit

allow contains "the workspace may be read" if {
	input.access.resource.kind == "file"
	input.access.action in {"read", "list"}
}

# Of a program each path that it changed is asked for, those of .git among them.
allow contains "files may be changed and programs run, since files are put back" if {
	input.call.effect_class == "reversible"
	input.access.resource.kind in {"file", "exec"}
}

# Which tables a statement touches is asked for while it runs, beside the call itself.
allow contains "sql_execute may be called" if input.access.resource.name == "sql_execute"

allow contains "the tables of a release may be changed, since rows are put back" if {
	input.call.effect_class == "reversible"
	input.access.resource.kind == "db"
	input.access.resource.table in {"packages", "releases", "drafts", "history"}
}

allow contains "the download site may be changed by calls that say how they are taken back" if {
	input.access.action == "connect"
	input.call.effect_class == "compensable"
}

allow contains "the team may be told, although nothing takes that back" if input.tool.name == "team_tell"

# A deferrable call touches nothing before the commit.
hold contains "mail leaves with the commit" if input.call.effect_class == "deferrable"

deny contains "only a person changes who may release" if input.access.resource.name == "MAINTAINERS"
