package remit_readonly_test

import data.remit
import data.remit.workspace.paths

file(action, root, path, class) := {
	"call": {"effect_class": class, "declared": true},
	"access": {"action": action, "resource": {"kind": "file", "root": root, "path": path, "segments": split(path, "/")}},
}

access(action, kind, class) := {
	"call": {"effect_class": class, "declared": class != "pivot"},
	"access": {"action": action, "resource": {"kind": kind, "name": "t"}},
}

runs(doc) if {
	count(remit.allow) > 0 with input as doc
	count(remit.deny) == 0 with input as doc
}

test_looking if {
	every action in ["read", "list"] {
		runs(file(action, "workspace", "src/a.go", "pure"))
		not runs(file(action, "home", "src/a.go", "pure"))
		remit.hint["only the root workspace can be looked at"] with input as file(action, "home", "a", "pure")
		not remit.hint["only the root workspace can be looked at"] with input as file(action, "workspace", "a", "pure")
	}
}

test_changing if {
	every action in ["write", "delete"] {
		remit.deny["this policy permits no changes"] with input as file(action, "workspace", "a", "pure")
		remit.hint["look and answer; say what you would change instead of changing it"] with input as file(action, "workspace", "a", "pure")
	}
	every class in ["reversible", "compensable", "deferrable", "pivot"] {
		remit.deny["this policy permits no tools with effects"] with input as access("call", "tool", class)
		remit.hint["use tools whose effect class is pure"] with input as access("call", "tool", class)
	}
}

test_outside if {
	every pair in [["execute", "exec"], ["connect", "https"], ["use", "secret"]] {
		remit.deny["this policy permits no programs, network access or use of secrets"] with input as access(pair[0], pair[1], "pure")
	}
}

test_calls if {
	runs(access("call", "tool", "pure"))
	not runs(access("call", "tool", "pivot"))
	not runs(access("call", "mcp", "pure"))
}

test_out_of_reach if {
	every path in [".git/config", "a/.GIT"] {
		remit.deny["the history of the repository is out of reach"] with input as file("read", "workspace", path, "pure")
	}
	every path in [".env", "a/.env.local", "id_rsa", "tls/server.pem", "prod.env", ".docker/config.json"] {
		remit.deny["files that usually hold secrets are out of reach"] with input as file("read", "workspace", path, "pure")
	}
	every path in [".env.example", "testdata/server.key", "test/id_rsa", "src/test/server.pem", "example.env", "docker/config.json"] {
		runs(file("read", "workspace", path, "pure"))
	}
}

test_masks if remit.mask == paths.masked with input as access("call", "tool", "pure")
