package remit_commit_gate_test

import data.remit
import data.remit.provenance

call(class) := {
	"purpose": "run",
	"session": {"labels": ["untrusted"]},
	"call": {"effect_class": class, "values": [{"pointer": "/to", "role": "authority", "origins": [], "short": false}]},
	"tool": {"tags": [], "destination": "none"},
	"access": {"action": "write", "resource": {"kind": "file"}},
}

commit(labels, class, cut) := {
	"purpose": "commit",
	"session": {"labels": labels},
	"txn": object.union({"effects": [{"kind": "write", "class": class}]}, cut),
}

test_reversible_effects_run if count(remit.ask) == 0 with input as call("reversible")

test_other_effects_need_known_values if {
	every class in ["compensable", "deferrable", "pivot"] {
		count(remit.ask) == 1 with input as call(class)
	}
}

test_one_look_before_the_commit if {
	count(remit.ask_commit) == 1 with input as commit(["untrusted"], "reversible", {})
	count(remit.ask_commit) == 0 with input as commit([], "reversible", {})
	count(remit.ask_commit) == 0 with input as commit(["untrusted"], "pivot", {})
}

test_too_much_to_list if {
	count(remit.ask_commit) == 1 with input as commit(["untrusted"], "pivot", {"effects_cut": true})
	count(remit.ask_commit) == 0 with input as commit([], "pivot", {"effects_cut": true})
}

test_later if {
	provenance.later with input as call("reversible")
	not provenance.later with input as call("pivot")
}
