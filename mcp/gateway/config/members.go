package config

// Object describes one kind of object of the configuration file.
type Object struct {
	Name    string // path in the file, with NAME for a free name
	Members []Member
}

// Member describes one member of an object of the configuration file.
type Member struct {
	Name    string
	Type    string
	Default string // empty: none, or the member is required
	Meaning string
}

// Objects returns the objects of the configuration file, outermost first. The
// parser rejects or reports every member that is not in them.
func Objects() []Object {
	return []Object{
		{"file", fileMembers},
		{"mcpServers.NAME", serverMembers},
		{"mcpServers.NAME.oauth", oauthMembers},
		{"remit", remitMembers},
		{"remit.servers.NAME", knownMembers},
		{"remit.servers.NAME.sandbox", sandboxMembers},
		{"remit.servers.NAME.tools.NAME", entryMembers},
		{"needs[]", needMembers},
		{"undo", undoMembers},
		{"compensate, before", templateMembers},
		{"verify", verifyMembers},
		{"resources, prompts", readMembers},
	}
}

// names returns the names of members.
func names(members []Member) (all []string) {
	for _, m := range members {
		all = append(all, m.Name)
	}
	return all
}

var (
	fileMembers = []Member{
		{"mcpServers", "object by name", "required", "servers, in the format of MCP clients"},
		{"servers", "object by name", "", "another name of mcpServers, as in some clients"},
		{"remit", "object", "", "what the gateway needs to know about the servers"},
		{"$schema", "string", "", "for editors; the gateway ignores it"},
	}

	serverMembers = []Member{
		{"command", "string", "", "program of a local server, which communicates over standard input and output"},
		{"args", "list of string", "", "arguments of command"},
		{"env", "object of strings", "", "environment variables of command"},
		{"cwd", "string", "the folder of remit", "working folder of command"},
		{"url", "string", "", "address of a remote server: http or https. A server has a command or a url"},
		{"serverUrl", "string", "", "another name of url, as in some clients"},
		{"type", "string", "stdio with command, http with url", "transport: stdio, http or sse. streamable-http and streamableHttp are other names of http"},
		{"headers", "object of strings", "", "headers of each request to url"},
		{"oauth", "object", "", "login at url, beyond what the server declares: docs/guides/gateway-login.md"},
		{"disabled", "boolean", "false", "true: the gateway ignores the server"},
	}

	oauthMembers = []Member{
		{"clientId", "string", "", "client ID that the authorization server issued"},
		{"clientSecret", "string", "", "secret of clientId; requires issuer"},
		{"issuer", "string", "", "authorization server that knows clientId; no other server gets clientSecret"},
		{"clientMetadataUrl", "string", "", "URL of a document that describes the client, instead of clientId"},
		{"callbackPort", "integer", "any free port", "port on this machine to which the browser returns"},
		{"scopes", "list of string", "the scopes that the server requests", "scopes of the token"},
	}

	remitMembers = []Member{
		{"servers", "object by name", "", "servers, by their names in mcpServers"},
	}

	knownMembers = []Member{
		{"tools", "object by name", "", "entry of each tool"},
		{"sandbox", "object", "no sandbox", "sandbox of a local server"},
		{"roots", "list of string", "", "names of the roots that the gateway reports if the server asks for roots"},
		{"asks", "list of string", `["elicitation"]`, "client features that the server can use: elicitation, sampling, roots"},
		{"resources", "object or false", "pure", "entry of all reads of resources; false: not served"},
		{"prompts", "object or false", "pure", "entry of all prompts; false: not served"},
	}

	sandboxMembers = []Member{
		{"roots", "list of string", "required", "names of the roots that the server sees and can change"},
		{"readable", "list of string", "", "absolute paths that the server can read, besides those of the system"},
		{"network", "boolean", "false", "true: the server has network. Its calls then have coverage observed, or declared if their entry says reversible"},
	}

	entryMembers = []Member{
		{"effectClass", "string", "compensable with compensate, pivot with snapshot, reversible in the sandbox; otherwise undeclared, which the workspace policy denies", "pure, reversible, compensable, deferrable or pivot"},
		{"needs", "list of objects", "the call itself, call mcp://SERVER/TOOL, which the policy always decides", "accesses of the call"},
		{"errors", "string", "unknown, unless the call is pure or confined, or its Verify finds nothing", "effect of a call whose result is an error: no_effect or unknown"},
		{"undo", `object, or "irreversible"`, "no revert", "how the runtime reverts a call"},
		{"before", "object", "", "call of a read-only tool that the gateway makes first; its result is /before"},
		{"verify", "object", "no check", "call of a read-only tool that verifies the call"},
		{"destination", "string", "model_chosen", "receiver of what the call sends: none, configured, third_party or model_chosen"},
		{"timeout", "string", "the default of the runtime", "duration after which the call times out, such as 30s"},
		{"idempotent", "boolean", "false", "true: the same call twice has one effect"},
		{"risk", "string", "undeclared", "hint for policies, input.tool.risk: low, medium or high"},
		{"approval", "boolean", "false", "hint for policies, input.tool.approval: true advises an approval"},
		{"exclusive", "boolean", "false", "true: no other call of the server runs meanwhile"},
		{"roles", "object of strings", "authority for every argument", "what arguments do, by JSON pointer with * for each element or member: authority, content or selector. Ignored in a draft"},
		{"trustedFields", "list of string", "", "JSON pointers into the structured content, with *: fields whose values only the service and the user choose. Ignored in a draft"},
		{"draft", "boolean", "false", "true: remit drafted the entry, and no person has reviewed it"},
	}

	needMembers = []Member{
		{"action", "string", "required", "action of the access, such as read"},
		{"resource", "string", "required", "resource or pattern. {argument} is the value of that argument; a list names each of its texts, and an absolute path is its place in the root"},
		{"method", "string", "any method", "HTTP method of a connect"},
	}

	undoMembers = []Member{
		{"compensate", "object", "", "call of a tool of the server that reverts the call"},
		{"snapshot", "list of string", "", "files or folders that the gateway saves before the call. An undo has compensate or snapshot"},
		{"repeatable", "boolean", "false", "true: the gateway can send the compensation again if it got no response"},
	}

	templateMembers = []Member{
		{"tool", "string", "required", "tool of the same server"},
		{"args", "object", "no arguments", "template of the arguments"},
	}

	verifyMembers = []Member{
		{"tool", "string", "required", "read-only tool of the same server"},
		{"args", "object", "no arguments", "template of the arguments"},
		{"applied", "string", "required", "pointer into the result: the call worked if a value is there"},
		{"equals", "any", "any value", "template of the value that must be there"},
	}

	readMembers = []Member{
		{"needs", "list of objects", "the read itself, which the policy always decides", "accesses of a read"},
		{"effectClass", "string", "pure", "pure or pivot"},
		{"destination", "string", "model_chosen", "receiver of what the read sends: none, configured, third_party or model_chosen"},
		{"timeout", "string", "the default of the runtime", "duration after which the read times out, such as 30s"},
	}
)
