package remit_workspace_git_test

import data.remit
import data.remit.workspace.git

applied(path, facts, confinement, purpose) := {
	"purpose": purpose,
	"call": {"effect_class": "reversible", "declared": true},
	"tool": {"confinement": confinement},
	"access": object.union({"action": "write", "resource": {
		"kind": "file",
		"root": "workspace",
		"path": path,
		"segments": split(path, "/"),
	}}, facts),
}

change(path, facts) := applied(path, facts, "sandbox", "apply")

runs(doc) if {
	count(remit.allow) > 0 with input as doc
	count(remit.ask) == 0 with input as doc
	count(remit.deny) == 0 with input as doc
	count(remit.hint) == 0 with input as doc
}

asks(doc) if {
	count(remit.ask) > 0 with input as doc
	count(remit.hint) > 0 with input as doc
	count(remit.deny) == 0 with input as doc
}

refused(doc) if count(remit.deny) > 0 with input as doc

test_history if {
	every path in [".git", ".git/HEAD", ".git/objects/ab/cd", ".git/index", ".git/refs/heads/main", "a/.git/modules/x/HEAD"] {
		runs(change(path, {}))
		runs(object.union(change(path, {}), {"access": {"action": "delete"}}))
	}
}

test_others_stay_out if {
	refused(applied(".git/HEAD", {}, "handles", "apply"))
	refused(applied(".git/HEAD", {}, "sandbox", "run"))
	refused(applied(".git/HEAD", {}, "trusted", "apply"))
}

test_what_runs if {
	every kind in ["hook", "attributes", "link", "todo", "repository"] {
		asks(change("x", {"git": {"kind": kind}}))
	}
}

test_what_runs_has_its_reason if {
	reasons := {kind: reason |
		some kind in ["hook", "attributes", "link", "todo", "repository"]
		some reason in remit.ask with input as change("x", {"git": {"kind": kind}})
	}
	count(reasons) == 5
	contains(reasons.hook, "hook")
	contains(reasons.attributes, "attributes")
	contains(reasons.link, "another folder")
	contains(reasons.todo, "rebase")
	contains(reasons.repository, "HEAD")
}

configured(keys, new) := change(".git/config", {"git": {"kind": "config", "keys": keys, "new": new}})

test_configuration if {
	every key in git.harmless {
		runs(configured([key], false))
	}
	every key in [
		"core.hookspath", "core.fsmonitor", "core.sshcommand", "core.pager", "core.editor", "core.worktree", "alias.st", "filter.*.clean",
		"include.path", "includeif.*.path", "diff.external", "diff.*.textconv", "merge.*.driver", "credential.helper", "url.*.insteadof",
		"remote.*.uploadpack", "submodule.*.update", "gpg.program", "branch.*.remote=url", "?", "remote.*.pushurl",
	] {
		asks(configured([key], false))
		asks(configured(["core.bare", key], true))
	}
	runs(configured(["remote.*.url"], true))
	asks(configured(["remote.*.url"], false))
	some why in remit.ask with input as configured(["b.x", "core.bare", "a.x"], true)
	contains(why, ": a.x, b.x")
}

test_facts_of_other_calls if {
	count(git.keys) == 0 with input as change("x", {"git": {"kind": "hook", "keys": ["core.pager"]}})
	every confinement in ["handles", "trusted", "sandbox"] {
		git.changes == "hook" with input as applied("x", {"git": {"kind": "hook"}}, confinement, "apply")
	}
	asks(applied("x", {"git": {"kind": "hook"}}, "handles", "apply"))
	refused(applied(".git/hooks/x", {"git": {"kind": "hook"}}, "handles", "apply"))
}
