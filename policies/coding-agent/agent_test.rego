package remit_coding_agent_test

import data.remit

doc(tool, access) := {
	"purpose": "run",
	"tool": {"name": tool, "confinement": "trusted", "coverage": "declared"},
	"call": {"args": {}, "effect_class": "reversible"},
	"access": access,
}

file(action, root, path) := {"action": action, "resource": {"kind": "file", "root": root, "path": path, "segments": split(path, "/")}}

self(tool) := {"action": "call", "resource": {"kind": "tool", "name": tool}}

bash := {"action": "execute", "resource": {"kind": "exec", "program": "bash"}}

runs(request) if {
	count(remit.allow) > 0 with input as request
	count(remit.ask) == 0 with input as request
	count(remit.deny) == 0 with input as request
}

asks(request) if {
	count(remit.ask) > 0 with input as request
	count(remit.deny) == 0 with input as request
}

refused(request) if count(remit.deny) > 0 with input as request

test_reads if {
	runs(doc("client_read", file("read", "workspace", "src/a.go")))
	runs(doc("client_read", file("read", "outside", "usr/include/stdio.h")))
	runs(doc("client_search", self("client_search")))
	runs(doc("client_inner", self("client_inner")))
	refused(doc("client_read", file("read", "workspace", ".env")))
	refused(doc("client_read", file("read", "outside", "home/u/.ssh/id_rsa")))
}

test_changes if {
	runs(doc("client_write", file("write", "workspace", "src/a.go")))
	runs(doc("client_edit", file("write", "workspace", "a.txt")))
	refused(doc("client_write", file("write", "workspace", ".git/config")))
	refused(doc("client_edit", file("write", "workspace", "id_rsa")))
	asks(doc("client_write", file("write", "workspace", ".mcp.json")))
	asks(doc("client_outside", file("write", "outside", "etc/passwd")))
}

test_commands if {
	runs(doc("client_shell", bash))
	runs(doc("client_shell", file("write", "workspace", "out/a.o")))
	asks(doc("client_shell_observed", bash))
	runs(doc("client_shell_observed", file("delete", "workspace", "out/a.o")))
	asks(doc("client_shell", object.union(file("write", "workspace", ".git/hooks/x"), {"git": {"kind": "hook"}})))
}

test_others if {
	asks(doc("client_other", self("client_other")))
	asks(doc("client_fetch", {"action": "connect", "resource": {"kind": "https", "host": "example.com"}}))
	remit.label["untrusted"] with input as doc("client_fetch", {"action": "connect", "resource": {"kind": "https", "host": "example.com"}})
	not runs(doc("file_write", file("write", "workspace", "a.txt")))
}

test_purposes if {
	runs(object.union(doc("client_other", file("delete", "outside", "src/a.go")), {"purpose": "revert"}))
	runs(object.union(doc("client_other", file("delete", "outside", "src/a.go")), {"purpose": "verify"}))
	count(remit.mask) > 0 with input as doc("client_other", file("delete", "outside", "src/a.go"))
}
