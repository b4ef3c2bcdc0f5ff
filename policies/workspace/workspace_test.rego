package remit_workspace_test

import data.remit
import data.remit.workspace.paths

file(action, root, path, class) := {
	"call": {"effect_class": class, "declared": true},
	"tool": {"confinement": "handles"},
	"access": {"action": action, "resource": {
		"kind": "file",
		"root": root,
		"path": path,
		"segments": split(path, "/"),
	}},
}

tool(class, declared, confinement) := {
	"call": {"effect_class": class, "declared": declared},
	"tool": {"confinement": confinement},
	"access": {"action": "call", "resource": {"kind": "tool", "name": "t"}},
}

runs(doc) if {
	count(remit.allow) > 0 with input as doc
	count(remit.ask) == 0 with input as doc
	count(remit.deny) == 0 with input as doc
}

asks(doc) if {
	count(remit.ask) > 0 with input as doc
	count(remit.deny) == 0 with input as doc
}

refused(doc) if count(remit.deny) > 0 with input as doc

refused(doc) if {
	count(remit.allow) == 0 with input as doc
	count(remit.ask) == 0 with input as doc
}

test_looking_at_the_workspace if {
	every action in ["read", "list"] {
		runs(file(action, "workspace", "src/a.go", "pure"))
		runs(file(action, "workspace", "src/a.go", "reversible"))
	}
}

test_changing_the_workspace if {
	every action in ["write", "delete"] {
		runs(file(action, "workspace", "src/a.go", "reversible"))
		refused(file(action, "workspace", "src/a.go", "pure"))
		asks(file(action, "workspace", "src/a.go", "pivot"))
		asks(file(action, "workspace", "src/a.go", "compensable"))
		asks(file(action, "workspace", "src/a.go", "deferrable"))
	}
}

test_other_roots if {
	every action in ["read", "list", "write", "delete"] {
		refused(file(action, "home", "src/a.go", "reversible"))
		refused(file(action, "workspace2", "src/a.go", "reversible"))
	}
}

test_other_actions if {
	every action in ["execute", "connect", "use"] {
		refused(file(action, "workspace", "src/a.go", "reversible"))
		refused(file(action, "workspace", "src/a.go", "pure"))
	}
	refused({
		"call": {"effect_class": "pure", "declared": true},
		"tool": {"confinement": "handles"},
		"access": {"action": "connect", "resource": {"kind": "https", "host": "example.com"}},
	})
}

test_programs if {
	program := {"access": {"action": "execute", "resource": {"kind": "exec", "program": "make"}}}
	runs(object.union(tool("reversible", true, "sandbox"), program))
	asks(object.union(tool("pivot", true, "sandbox"), program))
	refused(object.union(tool("reversible", true, "handles"), program))
	refused(object.union(tool("pure", true, "sandbox"), program))
	refused(object.union(tool("reversible", true, "sandbox"), {"access": {"action": "connect", "resource": {"kind": "exec", "program": "make"}}}))
	asks(object.union(tool("reversible", true, "trusted"), program))
}

test_git if {
	every path in [".git", ".git/config", "sub/.git/hooks/pre-commit", ".GIT/config", ".Git", ".git./config", ".git /x"] {
		every action in ["read", "list", "write", "delete"] {
			remit.deny["the history of the repository is out of reach"] with input as file(action, "workspace", path, "reversible")
		}
	}
	every path in [".github/workflows/a.yml", ".gitignore", "git/a", "a.git"] {
		runs(file("write", "workspace", path, "reversible"))
	}
}

test_clients if {
	every path in [
		".mcp.json", "sub/.MCP.json", ".vscode/mcp.json", ".cursor/mcp.json", ".codex/config.toml",
		".claude/settings.json", "a/.Claude/settings.local.json", ".gemini/settings.json ",
	] {
		every action in ["write", "delete"] {
			asks(file(action, "workspace", path, "reversible"))
		}
		runs(file("read", "workspace", path, "reversible"))
	}
	every path in ["mcp.json", ".vscode/settings.json", "docs/.claude.md", ".claude/notes.md", ".vscode/a/mcp.json"] {
		runs(file("write", "workspace", path, "reversible"))
	}
	runs(observed_change("write", ".mcp.json", "apply"))
}

test_secrets if {
	every path in [
		".env", ".ENV", "a/.env.local", ".env/x", ".ssh/config", ".AWS/credentials", "k/id_rsa", "id_rsa.pub.bak",
		"ID_ED25519", "tls/server.pem", "tls/Server.KEY", "x.p12", "x.pfx", ".netrc", "_netrc", ".npmrc",
		".git-credentials", "credentials", "gcp/credentials.json", "server.key ",
		".env~", "a/..env.swp", "..env.local.swp", "#.env#", "server.key.bak", "tls/key.pem.old", ".server.key.swp", "key.pem~", "x.pem.orig",
		".envrc", ".docker/config.json", "a/.Docker/config.json", ".docker/config.json/x", ".cargo/credentials.toml", ".cargo/credentials", ".dockercfg",
		"AuthKey_X.p8", "putty.ppk", "release.jks", "passwords.kdbx", "terraform.tfstate", "infra/prod.tfstate", "terraform.tfstate.backup", "prod.env", "deploy/Prod.env",
	] {
		every action in ["read", "list", "write", "delete"] {
			remit.deny["files that usually hold secrets are out of reach"] with input as file(action, "workspace", path, "reversible")
		}
	}
	every path in ["environment.go", "env", "keys.go", "pem/a.go", "credentials.go", "monkey", "npmrc",
		".docker/Dockerfile", ".docker/a/config.json", "docker/config.json", "config.json", ".cargo/config.toml", "env.go", "environment", "x.environment",
		"x.envoy", "key.bak", "pem.old", "a.key.go", "a.pem.md", "tfstate", "tfstate.go", "x.tf", "terraform.tfvars", "p8", "jks.go", "notes~",
	] {
		runs(file("read", "workspace", path, "pure"))
	}
}

test_public if {
	every path in [
		"cacert.pem", "a/CAcert.pem", "tls/fullchain.pem", "id_rsa.pub", ".env.example", "a/.ENV.sample",
		"example.env", "a/Sample.env", "template.env", "src/go.env", "lib/truststore.jks", "cacerts.jks", "src/test/resources/server.jks",
		"testdata/terraform.tfstate", "fixtures/a.p8", "testdata/x.pem.bak",
		"testdata/a/server.key", "a/Fixtures/id_rsa", "tests/x.pem/y", "test/agent.pfx", "m/src/test/resources/a.p12",
	] {
		runs(file("read", "workspace", path, "pure"))
	}
	every path in [
		"cacert.pem/x", "cacert.pem/x/cacert.pem", "cacert.pem ", "server.key/cacert.pem", "key-cert.pem", "rootca-key.pem", "privkey.pem", "server.pem", ".env.example/x",
		"testdata./a.key", "x.key/testdata/a", "testdata.key", "deploy/test/server.key", "deploy/test/a/id_rsa", "mysrc/test/a.key",
		"tests/.env", "testdata/.env.local", "tests/prod.env", "fixtures/.envrc", "testdata/.docker/config.json", "example.env/x", "x.jks/cacerts.jks", "fixtures/.npmrc", "fixtures/.ssh/id_rsa", "testdata/credentials.json", ".aws/testdata/a",
	] {
		refused(file("read", "workspace", path, "pure"))
	}
}

test_calls if {
	runs(tool("pure", true, "trusted"))
	runs(tool("reversible", true, "handles"))
	runs(tool("reversible", true, "sandbox"))
	asks(tool("reversible", true, "trusted"))
	asks(tool("compensable", true, "handles"))
	asks(tool("deferrable", true, "handles"))
	asks(tool("pivot", true, "handles"))
}

test_unconfined if {
	every action in ["write", "delete"] {
		asks(object.union(file(action, "workspace", "src/a.go", "reversible"), {"tool": {"confinement": "trusted"}}))
	}
	runs(object.union(file("read", "workspace", "src/a.go", "reversible"), {"tool": {"confinement": "trusted"}}))
}

after_untrusted(class, confinement, destination) := object.union(
	tool(class, true, confinement),
	{"session": {"labels": ["untrusted"]}, "tool": {"destination": destination}},
)

test_pure_calls_after_untrusted_content if {
	every confinement in ["trusted", "handles"] {
		asks(after_untrusted("pure", confinement, "model_chosen"))
		asks(object.union(after_untrusted("pure", confinement, "model_chosen"), {"access": {"resource": {"kind": "mcp"}}}))
		every destination in ["none", "configured", "third_party"] {
			runs(after_untrusted("pure", confinement, destination))
		}
		runs(object.union(after_untrusted("pure", confinement, "model_chosen"), {"session": {"labels": ["private"]}}))
		runs(object.union(after_untrusted("reversible", "handles", "model_chosen"), file("read", "workspace", "a", "reversible")))
	}
	runs(after_untrusted("pure", "sandbox", "model_chosen"))
	runs(object.union(file("read", "workspace", "a", "pure"), {"session": {"labels": ["untrusted"]}, "tool": {"destination": "model_chosen"}}))
}

reverted(doc) := object.union(doc, {"purpose": "revert"})

test_what_was_done_can_be_reverted if {
	every confinement in ["trusted", "handles", "sandbox"] {
		every class in ["reversible", "compensable", "deferrable"] {
			runs(reverted(tool(class, true, confinement)))
			runs(reverted(object.union(file("write", "workspace", "src/a.go", class), {"tool": {"confinement": confinement}})))
		}
	}
	runs(reverted(object.union(server("pivot", true, "trusted"), {"tool": {"coverage": "observed"}, "access": {"action": "write", "resource": {"kind": "file", "root": "workspace", "path": "a", "segments": ["a"], "name": "a"}}})))
	runs(reverted(object.union(file("write", "workspace", ".git/objects/ab", "reversible"), {"tool": {"confinement": "sandbox"}})))
	refused(reverted(file("write", "workspace", ".env", "reversible")))
	refused(reverted(file("write", "workspace", ".git/config", "reversible")))
	asks(reverted(file("write", "workspace", ".mcp.json", "reversible")))
}

test_a_server_learns_what_ends_the_question if {
	doc := object.union(after_untrusted("pure", "trusted", "model_chosen"), {"tool": {"tags": ["mcp"]}})
	some said in remit.ask with input as doc
	contains(said, "destination none")
	plain := remit.ask with input as after_untrusted("pure", "trusted", "model_chosen")
	every text in plain {
		not contains(text, "destination none")
	}
}

test_labels if {
	remit.label == {"untrusted"} with input as {"access": {"action": "connect"}}
	remit.label == {"untrusted"} with input as server("pure", true, "trusted")
	remit.label == {"untrusted"} with input as {"tool": {"tags": ["untrusted"]}}
	remit.label == set() with input as file("read", "workspace", "a", "pure")
}

test_undeclared if {
	doc := tool("pivot", false, "trusted")
	refused(doc)
	some why in remit.deny with input as doc
	contains(why, "declare one: ")
	not contains(why, "gateway")
}

test_undeclared_of_a_server if {
	doc := object.union(tool("pivot", false, "trusted"), {"tool": {"tags": ["mcp"]}})
	refused(doc)
	some why in remit.deny with input as doc
	contains(why, "remit init")
	not contains(why, "tool.Pure")
}

test_masks if {
	plain := {sprintf("file://*/**/%s/**", [replace(name, "#", "%23")]) | some name in paths.secret_names}
	templates := {sprintf("file://*/**/%s*/** except %s", [prefix, public]) | some prefix in paths.secret_prefixes}
	prefixes := {sprintf("file://*/**/%s*/** except %s %s", [prefix, public, fixtures]) | some prefix in paths.key_prefixes}
	environments := {sprintf("file://*/**/*%s/** except %s", [suffix, public]) | some suffix in paths.secret_suffixes}
	pairs := {sprintf("file://*/**/%s/**", [concat("/", pair)]) | some pair in paths.secret_pairs}
	suffixes := {sprintf("file://*/**/*%s/** except %s %s", [suffix, public, fixtures]) | some suffix in paths.key_suffixes}
	want := (({"file://*/**/.git/**"} | plain) | (environments | pairs)) | ((templates | prefixes) | suffixes)
	want == paths.masked
	remit.mask == want with input as tool("pure", true, "trusted")
	remit.mask == want - {"file://*/**/.git/**"} with input as tool("pure", true, "sandbox")
}

public := concat(" ", sort([sprintf("file://*/**/%s", [name]) | some name in paths.public_names]))

folders := {sprintf("file://*/**/%s/**", [folder]) | some folder in paths.fixture_folders}

fixtures := concat(" ", sort(folders | {"file://*/test/**", "file://*/**/src/test/**"}))

test_hints if {
	remit.hint["only the root workspace can be touched"] with input as file("read", "home", "a", "pure")
	remit.hint["leave .git to git: a tool that runs programs in the sandbox can run it, and undo covers what it changes"] with input as file("read", "workspace", ".git", "pure")
	remit.hint["work without this file, or ask the person for what is needed from it"] with input as file("read", "workspace", ".env", "pure")
	remit.hint[remit.allowed] with input as file("execute", "workspace", "a", "pure")
	reversible := "a tool that changes the workspace has to have the effect class reversible"
	remit.hint[reversible] with input as file("write", "workspace", "a", "pure")
	count(remit.hint) == 0 with input as file("read", "workspace", "a", "pure")
}

server(class, declared, confinement) := object.union(
	tool(class, declared, confinement),
	{"access": {"action": "call", "resource": {"kind": "mcp", "server": "s", "tool": "t"}}},
)

test_tools_of_other_servers if {
	every confinement in ["trusted", "handles", "sandbox"] {
		runs(server("pure", true, confinement))
		asks(server("pivot", true, confinement))
		asks(server("compensable", true, confinement))
		refused(server("pivot", false, confinement))
	}
	every confinement in ["handles", "sandbox"] {
		runs(server("reversible", true, confinement))
	}
	asks(server("reversible", true, "trusted"))
	refused({
		"call": {"effect_class": "pure", "declared": true},
		"tool": {"confinement": "trusted"},
		"access": {"action": "use", "resource": {"kind": "mcp", "server": "s", "tool": "t"}},
	})
}

test_drafts if {
	tagged := {"tool": {"tags": ["mcp", "untrusted", "draft"]}}
	asks(object.union(server("reversible", true, "handles"), tagged))
	asks(object.union(server("reversible", true, "trusted"), tagged))
	runs(object.union(server("reversible", true, "sandbox"), tagged))
	runs(object.union(server("pure", true, "trusted"), tagged))
}

server_read(class, declared) := object.union(
	tool(class, declared, "trusted"),
	{"access": {"action": "read", "resource": {"kind": "mcp", "server": "s", "tool": "resource/x"}}},
)

test_what_other_servers_have if {
	runs(server_read("pure", true))
	asks(server_read("pivot", true))
	refused(server_read("pivot", false))
	every class in ["reversible", "compensable", "deferrable"] {
		not runs(server_read(class, true))
	}
}

asked_of_the_client(class, confinement) := object.union(
	tool(class, true, confinement),
	{"access": {"action": "ask", "resource": {"kind": "mcp", "server": "s", "tool": "sampling/text"}}},
)

# The effect class of a call does not permit client requests of its server.
test_what_other_servers_ask if {
	every class in ["pure", "reversible", "compensable", "deferrable", "pivot"] {
		runs(asked_of_the_client(class, "trusted"))
		runs(asked_of_the_client(class, "sandbox"))
	}
	refused(object.union(tool("pure", true, "trusted"), {"access": {"action": "ask", "resource": {"kind": "tool", "tool": "t"}}}))
}

# A server that can act anywhere, whose roots are compared before and after a call.
observed(class) := object.union(server(class, true, "trusted"), {"tool": {"coverage": "observed"}})

observed_change(action, path, purpose) := object.union(
	file(action, "workspace", path, "pivot"),
	{"purpose": purpose, "tool": {"confinement": "trusted", "coverage": "observed"}},
)

test_observed_calls if {
	runs(observed("pure"))
	asks(observed("pivot"))
	remit.ask == {"the call can act outside its roots: a revert restores files of the roots, and what it does elsewhere is unknown"} with input as observed("pivot")
	remit.ask == {"this call cannot be reverted"} with input as server("pivot", true, "trusted")
	every action in ["write", "delete"] {
		asks(observed_change(action, "a.txt", "run"))
		count(remit.hint) == 0 with input as observed_change(action, "a.txt", "run")
		runs(observed_change(action, "a.txt", "apply"))
		refused(observed_change(action, ".git/hooks/x", "apply"))
		refused(observed_change(action, ".env", "apply"))
		asks(object.union(observed_change(action, "a.txt", "apply"), {"tool": {"coverage": "confined"}}))
	}
	asks(observed_change("read", "a.txt", "apply"))
	not runs(object.union(observed_change("write", "a.txt", "apply"), {"access": {"resource": {"root": "home"}}}))
	not runs(object.union(observed_change("write", "a.txt", "apply"), {"call": {"effect_class": "pure"}}))
}
