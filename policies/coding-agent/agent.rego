# A coding agent with its own tools, which a person leaves on all day. Reads, and
# changes that a revert covers, run without approval.
package remit

import data.remit.workspace.clients
import data.remit.workspace.git
import data.remit.workspace.paths

allow contains "the agent acts inside itself" if {
	input.tool.name == "client_inner"
	input.access.action == "call"
}

allow contains "files may be read" if {
	input.tool.name in {"client_read", "client_search"}
	input.access.action in {"read", "call"}
}

allow contains "files of the workspace may be changed" if {
	input.tool.name in {"client_write", "client_edit"}
	paths.inside
	input.access.action == "write"
}

allow contains "commands run in the sandbox, and the policy decides each path that they change" if {
	input.tool.name == "client_shell"
	input.access.action == "execute"
}

allow contains "a change of the workspace can be reverted" if {
	input.tool.name in {"client_shell", "client_shell_observed", "client_other"}
	paths.inside
	input.access.action in {"read", "list", "write", "delete"}
}

ask contains "the command runs outside the sandbox" if {
	input.tool.name == "client_shell_observed"
	input.access.action == "execute"
}

ask contains "what this tool does outside the workspace is unknown" if {
	input.tool.name == "client_other"
	input.access.action == "call"
}

ask contains "the file lies outside the workspace, and a revert does not restore it" if input.tool.name == "client_outside"

ask contains "the page may hold instructions, and its address leaves this machine" if input.tool.name == "client_fetch"

label contains "untrusted" if input.tool.name == "client_fetch"

deny contains "files that usually hold secrets are out of reach" if paths.secret

deny contains "the history of the repository is changed by git only" if {
	paths.git
	input.tool.name in {"client_write", "client_edit"}
}

ask contains "a client of agents starts what this file says, outside every sandbox" if {
	clients.file
	input.access.action in {"write", "delete"}
}

ask contains "git runs code by this change later" if git.guarded

mask contains pattern if some pattern in paths.masked_secrets

allow contains "a call may be reverted" if input.purpose == "revert"

allow contains "the result stands" if input.purpose == "verify"
