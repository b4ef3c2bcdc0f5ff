# A coding agent with its own tools, which a person leaves on all day. Reads, and
# changes that a revert covers, run without approval.
package remit

import data.remit.coding_agent
import data.remit.workspace.clients
import data.remit.workspace.git
import data.remit.workspace.paths

allow contains "the agent acts inside itself" if {
	input.tool.name == "client_inner"
	input.access.action == "call"
}

reads if {
	input.tool.name in {"client_read", "client_search"}
	input.access.action in {"read", "call"}
}

allow contains "files may be read" if reads

ask contains "the file lies outside the workspace" if {
	reads
	coding_agent.outside
	not coding_agent.readable
}

allow contains "files of the workspace may be changed" if {
	input.tool.name in {"client_write", "client_edit"}
	paths.inside
	input.access.action == "write"
}

allow contains "a change of the workspace can be reverted" if {
	input.tool.name in {"client_shell", "client_shell_observed", "client_other"}
	paths.inside
	input.access.action in {"read", "list", "write", "delete"}
}

sandboxed if {
	input.tool.name == "client_shell"
	input.access.action == "execute"
}

observed_command if {
	input.tool.name == "client_shell_observed"
	input.access.action == "execute"
}

# The hooks look, after a command that was let run in the background. The agent
# cannot start this.
late if input.tool.name == "client_background"

allow contains "what a command in the background changed is recorded" if {
	late
	input.access.action == "call"
}

allow contains "what a command in the background changed is recorded" if {
	late
	paths.inside
	input.access.action in {"read", "list"}
}

allow contains "commands run in the sandbox, and the policy decides each path that they change" if sandboxed

# The hooks then choose client_shell_observed.
deny contains "the sandbox does not have what this command needs" if {
	sandboxed
	coding_agent.leaves
}

sends := sprintf("the command can send data to, and gets content from: %s", [concat(", ", coding_agent.named_hosts)])

ask contains {"reason": sends, "remember": "session", "keys": coding_agent.page_keys} if {
	sandboxed
	count(coding_agent.named_hosts) > 0
	count(coding_agent.page_keys) > 0
}

ask contains {"reason": sends, "remember": "never"} if {
	sandboxed
	count(coding_agent.named_hosts) > 0
	count(coding_agent.page_keys) == 0
}

ask contains {"reason": "the command lets a package run code where it is installed", "remember": "never"} if {
	sandboxed
	regex.match(`\bnpm pkg set\b|\bpackage\.json\b`, coding_agent.command)
	regex.match(coding_agent.lifecycle, coding_agent.command)
}

allow contains "the text of the command has only forms that change nothing of others" if {
	observed_command
	coding_agent.harmless
}

ask contains {"reason": "the command runs outside the sandbox", "remember": "session", "keys": coding_agent.keys} if {
	observed_command
	not coding_agent.harmless
	count(coding_agent.keys) > 0
}

ask contains {"reason": "the command runs outside the sandbox", "remember": "never"} if {
	observed_command
	not coding_agent.harmless
	count(coding_agent.keys) == 0
}

deny contains "a person starts what acts as another user" if {
	observed_command
	coding_agent.rises
}

deny contains "a person decides what guards the agent" if {
	input.tool.name in {"client_shell", "client_shell_observed"}
	input.access.action == "execute"
	coding_agent.guards
}

hint contains "tell the person the command and why; they can run it in a terminal" if coding_agent.rises

hint contains "tell the person the command and why; they can run it in a terminal" if coding_agent.guards

connects if {
	input.tool.name == "client_shell"
	input.access.action == "connect"
}

allow contains "programs install from known sources" if {
	connects
	input.access.resource.kind == "https"
	input.access.resource.port == 443
	input.access.resource.host in coding_agent.source_hosts
}

allow contains "the command was approved with this host" if {
	connects
	input.access.resource.host in coding_agent.named_hosts
}

allow contains "the command only gets pages of documentation" if {
	connects
	input.access.resource.port == 443
	input.access.resource.host in coding_agent.page_hosts
}

label contains "untrusted" if {
	sandboxed
	count(coding_agent.page_hosts) > 0
}

hint contains "a running command cannot ask: start it again with the URL in its text, such as https://HOST/, and the person decides before it starts" if connects

allow contains "the search is for words" if {
	input.tool.name == "client_fetch"
	input.access.action == "call"
}

fetches if {
	input.tool.name == "client_fetch"
	input.access.action == "connect"
}

allow contains "pages of documentation may be fetched" if {
	fetches
	coding_agent.documented(input.access.resource.host)
}

ask contains {
	"reason": "the page may hold instructions, and its address leaves this machine", "remember": "session",
	"keys": {sprintf("pages of %s", [input.access.resource.host])},
} if {
	fetches
	not coding_agent.documented(input.access.resource.host)
}

ask contains {"reason": "the address or the search is long enough to carry data away", "remember": "never"} if {
	input.tool.name == "client_fetch"
	coding_agent.carries
}

deny contains "the address belongs to this machine, its network or the cloud's metadata" if {
	input.access.action == "connect"
	coding_agent.own_address(input.access.resource.host)
}

label contains "untrusted" if input.tool.name == "client_fetch"

other_call if {
	input.tool.name == "client_other"
	input.access.action == "call"
}

allow contains "the person listed this tool" if {
	other_call
	input.call.args.tool in coding_agent.safe_tools
}

allow contains "the tool gets public documentation" if {
	other_call
	coding_agent.documents
}

label contains "untrusted" if {
	other_call
	coding_agent.documents
}

ask contains "what this tool does outside the workspace is unknown" if {
	other_call
	not input.call.args.tool in coding_agent.safe_tools
	not coding_agent.documents
}

ask contains "the file lies outside the workspace, and a revert does not restore it" if input.tool.name == "client_outside"

deny contains "the file starts programs, or decides about them" if {
	input.tool.name == "client_outside"
	coding_agent.startup
}

deny contains "commands in the sandbox do not see the files of /tmp" if {
	input.tool.name == "client_outside"
	coding_agent.scratch
}

hint contains "put scratch files into a folder of the workspace, and remove them when you are done" if {
	input.tool.name == "client_outside"
	coding_agent.scratch
}

deny contains "files that usually hold secrets are out of reach" if paths.secret

deny contains "files that usually hold secrets are out of reach" if coding_agent.private

hint contains "work without this file, or ask the person for what is needed from it" if paths.secret

deny contains "the history of the repository is changed by git only" if {
	paths.git
	input.tool.name in {"client_write", "client_edit"}
}

changes if {
	paths.inside
	input.access.action in {"write", "delete"}
}

ask contains "a client of agents starts what this file says, outside every sandbox" if {
	changes
	clients.file
}

ask contains "a tool of the person starts what this file says, outside every sandbox" if {
	changes
	coding_agent.starter
}

ask contains "others run what this change starts, with secrets of theirs" if {
	changes
	coding_agent.spreads
}

ask contains "git runs code by this change later" if git.guarded

mask contains pattern if some pattern in paths.masked_secrets

allow contains "a call may be reverted" if input.purpose == "revert"
