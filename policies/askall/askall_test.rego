package remit_askall_test

import data.remit
import data.remit.workspace.paths

doc(purpose, root, path) := {
	"purpose": purpose,
	"access": {"action": "read", "resource": {"kind": "file", "root": root, "path": path, "segments": split(path, "/")}},
}

test_everything_is_asked if {
	every purpose in ["run", "apply"] {
		remit.ask == {"this policy asks about everything"} with input as doc(purpose, "home", "a")
		count(remit.allow) == 0 with input as doc(purpose, "home", "a")
		count(remit.deny) == 0 with input as doc(purpose, "home", "a")
		count(remit.hint) == 1 with input as doc(purpose, "home", "a")
	}
}

test_other_purposes if {
	every purpose in ["verify", "list"] {
		count(remit.ask) == 0 with input as doc(purpose, "workspace", "a")
		remit.allow == {"only what runs is asked about"} with input as doc(purpose, "workspace", "a")
	}
	remit.ask == {"a revert needs approval too"} with input as doc("revert", "workspace", "a")
	count(remit.hint) == 0 with input as doc("revert", "workspace", "a")
}

test_out_of_reach if {
	remit.deny == {"the history of the repository is out of reach"} with input as doc("run", "workspace", "a/.git/config")
	every path in [".env", "a/.env.local", "id_rsa", "tls/server.pem", "prod.env", ".docker/config.json"] {
		remit.deny == {"files that usually hold secrets are out of reach"} with input as doc("run", "workspace", path)
	}
	every path in [".env.example", "testdata/server.key", "test/id_rsa", "src/test/server.pem", "example.env", "docker/config.json"] {
		count(remit.deny) == 0 with input as doc("run", "workspace", path)
	}
	paths.inside with input as doc("run", "workspace", "a")
	not paths.inside with input as doc("run", "home", "a")
}

test_masks if remit.mask == paths.masked with input as doc("run", "workspace", "a")
