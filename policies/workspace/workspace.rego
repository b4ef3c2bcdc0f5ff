# The default policy. An agent may read the workspace and make changes that can be
# reverted. Those need no approval, because a revert covers them. Effects that a
# revert does not cover need one.
package remit

import data.remit.workspace.git
import data.remit.workspace.paths

allow contains "files of the workspace may be read and listed" if {
	paths.inside
	input.access.action in {"read", "list"}
}

allow contains "reversible changes of the workspace are allowed" if {
	paths.inside
	input.access.action in {"write", "delete"}
	input.call.effect_class == "reversible"
}

allow contains "a call without effects may run" if {
	tool_call
	input.call.effect_class == "pure"
}

# The call itself has no effect here: a confined tool reaches resources through
# accesses, and the policy decides each of them.
allow contains "a confined reversible call may run, and the policy decides each of its accesses" if {
	tool_call
	input.call.effect_class == "reversible"
	input.tool.confinement in {"sandbox", "handles"}
}

allow contains "a program may run in the sandbox, and the policy decides each path that it changes" if {
	input.access.action == "execute"
	input.call.effect_class == "reversible"
	input.tool.confinement == "sandbox"
}

ask contains "the tool is not confined, so only its author asserts that the call can be reverted" if {
	not input.access.action in {"read", "list", "ask"}
	runs("reversible")
	input.tool.confinement == "trusted"
}

ask contains "this call cannot be reverted" if runs("pivot")

ask contains "this call can be compensated but leaves traces" if runs("compensable")

ask contains "this call has outside effects, and runs once it is approved" if runs("deferrable")

deny contains undeclared if not input.call.declared

undeclared := concat("", [
	"the tool declares no effect class, so it counts as pivot; ",
	"declare one: tool.Pure(), tool.Effect(effect.Reversible) with tool.Confined(tool.Handles), … (pure, reversible, compensable, deferrable, pivot)",
]) if not of_a_server

deny contains "the history of the repository is out of reach" if {
	paths.git
	not git.program
}

deny contains "files that usually hold secrets are out of reach" if paths.secret

tool_call if {
	input.access.action == "call"
	input.access.resource.kind == "tool"
}

# A sandboxed program reads without a decision, so it must not see denied files.
mask contains pattern if some pattern in paths.masked_secrets

# A change of the history outside a sandbox affects more than files.
mask contains paths.history if input.tool.confinement != "sandbox"

hint contains "only the root workspace can be touched" if {
	input.access.resource.kind == "file"
	not paths.inside
}

hint contains "leave .git to git: a tool that runs programs in the sandbox can run it, and undo covers what it changes" if {
	paths.git
	not git.program
}

hint contains "work without this file, or ask the person for what is needed from it" if paths.secret

hint contains "a tool that changes the workspace has to have the effect class reversible" if {
	paths.inside
	input.access.action in {"write", "delete"}
	irreversible
}

hint contains allowed if {
	count(allow) == 0
	count(ask) == 0
}

allowed := concat("", [
	"allowed are reading and listing files of the workspace, ",
	"writing and deleting them with tools whose effect class is reversible, programs in the sandbox, and calls of pure tools",
])

# The runtime cannot observe what an MCP server does with a call. That the call only
# reads is an assertion, except for a server in the sandbox.
allow contains "a call of an MCP server's tool without effects may run" if {
	server_call
	input.call.effect_class == "pure"
}

allow contains "a call of an MCP server's tool with reversible file changes may run, and the policy decides each path" if {
	server_call
	input.call.effect_class == "reversible"
	input.tool.confinement in {"sandbox", "handles"}
}

# A draft entry repeats what the server asserts about its tool. Whether the call can
# be reverted depends on that.
ask contains "the entry of this tool is an unchecked draft of its server's assertions; check it, and remove draft from the entry" if {
	server_call
	"draft" in input.tool.tags
	input.call.effect_class == "reversible"
	input.tool.confinement != "sandbox"
}

# A read has no effects by the protocol. The policy trusts an entry that states
# otherwise. The content of a read is untrusted.
allow contains "resources of an MCP server may be read" if {
	input.access.action == "read"
	input.access.resource.kind == "mcp"
	input.call.effect_class == "pure"
}

server_call if {
	input.access.action == "call"
	input.access.resource.kind == "mcp"
}

# A client request of a server was not decided with its call. The request itself has
# no effect, for any effect class of the call. The configuration of the server
# determines which requests it may send.
allow contains "client requests of an MCP server are allowed as far as its configuration permits" if asks_client

asks_client if {
	input.access.action == "ask"
	input.access.resource.kind == "mcp"
}

runs(class) if {
	input.call.effect_class == class
	not apart
}

# An agent reverts a change of its session's call. Denials still apply, and so do
# approvals.
allow contains "a call may be reverted" if input.purpose == "revert"

# The operator of a gateway writes no Go.
undeclared := concat("", [
	"the effects of this MCP server's tool are not declared, so it counts as pivot; ",
	"give it an entry with an effectClass in the gateway's configuration, where remit init --config FILE --write drafts those that are missing",
]) if of_a_server

of_a_server if "mcp" in input.tool.tags

# A pure call changes nothing here, but its arguments can leave. A program in a
# sandbox sends nothing without a decided access.
ask contains leaves if {
	"untrusted" in input.session.labels
	input.access.action == "call"
	input.call.effect_class == "pure"
	input.tool.destination == "model_chosen"
	input.tool.confinement != "sandbox"
}

leaves := "untrusted content was read, and the model chooses where this call goes" if not of_a_server

leaves := concat("", [
	"untrusted content was read, and the model chooses where this call goes; ",
	"if it sends nothing elsewhere, set destination none in its entry, or run its server in a sandbox",
]) if of_a_server

label contains "untrusted" if input.access.action == "connect"

label contains "untrusted" if input.access.resource.kind == "mcp"

label contains "untrusted" if "untrusted" in input.tool.tags

# A server that can act anywhere, whose roots are compared before and after a call.
# A revert restores the files of the roots. Other effects are unknown.
observed if input.tool.coverage == "observed"

ask contains "the call can act outside its roots: a revert restores files of the roots, and what it does elsewhere is unknown" if {
	input.call.effect_class == "pivot"
	observed
	not asks_client
	not observed_change
}

# The call was allowed, and these changes of the workspace have happened.
allow contains "changes of an observed call in the workspace can be reverted" if observed_change

observed_change if {
	paths.inside
	observed
	input.purpose in {"apply", "revert"}
	input.call.effect_class == "pivot"
	input.access.action in {"write", "delete"}
}

apart if asks_client

apart if input.purpose == "revert"

apart if observed

irreversible if {
	input.call.effect_class != "reversible"
	not observed
}
