package remit_flow_test

import data.remit
import data.remit.flow

doc(labels, action, kind, destination, args) := {
	"session": {"labels": labels},
	"call": {"args": args},
	"tool": {"tags": [], "destination": destination},
	"access": {"action": action, "resource": {"kind": kind}},
}

both := ["private", "untrusted"]

refused := "private data and untrusted content were read: data may leave only to configured destinations"

asked := "private data and untrusted content were read: a person must check what leaves"

named := "untrusted content was read: the arguments of a call that leaves must not name files or secrets"

test_labels if {
	remit.label == {"private"} with input as doc([], "read", "file", "none", {})
	remit.label == {"private"} with input as doc([], "read", "db", "none", {})
	remit.label == {"private"} with input as doc([], "use", "secret", "none", {})
	remit.label == {"untrusted"} with input as doc([], "connect", "https", "configured", {})
	remit.label == {"untrusted"} with input as doc([], "call", "mcp", "none", {})
	remit.label == set() with input as doc([], "write", "file", "none", {})
	remit.label == set() with input as doc([], "call", "tool", "none", {})
	remit.label == {"private", "untrusted"} with input as {"tool": {"tags": ["private", "untrusted"]}}
}

test_nothing_private_leaves if {
	every destination in ["third_party", "model_chosen", "", "none"] {
		remit.deny == {refused} with input as doc(both, "connect", "https", destination, {})
		remit.deny == {refused} with input as doc(both, "call", "mcp", destination, {})
	}
	remit.deny == {refused} with input as doc(both, "call", "tool", "third_party", {})
	remit.deny == {refused} with input as doc(both, "call", "tool", "model_chosen", {})
}

test_configured_places_are_asked_about if {
	remit.ask == {asked} with input as doc(both, "connect", "https", "configured", {})
	count(remit.deny) == 0 with input as doc(both, "connect", "https", "configured", {})
	count(remit.ask) == 0 with input as doc(both, "connect", "https", "third_party", {})
}

test_each_alone_is_free if {
	every labels in [[], ["private"], ["untrusted"], ["other"]] {
		every destination in ["third_party", "configured"] {
			count(remit.deny) + count(remit.ask) == 0 with input as doc(labels, "connect", "https", destination, {"q": "x"})
		}
	}
	every action in ["read", "write", "delete", "call"] {
		count(remit.deny) + count(remit.ask) == 0 with input as doc(both, action, "file", "none", {"path": "a"})
	}
}

test_one_call_that_reads_and_sends if {
	every args in [{"body": {"of": ["FILE://workspace/a"]}}, {"x": "secret://github"}, {"Path": "a"}, {"parts": [{"attachment": 1}]}] {
		remit.deny == {named} with input as doc(["untrusted"], "connect", "https", "configured", args)
		count(remit.deny) == 0 with input as doc([], "connect", "https", "configured", args)
	}
	every args in [{"body": "profile://x", "n": 1}, "file", null, {"pathway": 1}] {
		count(remit.deny) == 0 with input as doc(["untrusted"], "connect", "https", "configured", args)
	}
}

test_hints if {
	count(remit.hint) == 1 with input as doc(["untrusted"], "connect", "https", "configured", {})
	count(remit.hint) == 0 with input as doc(["private"], "connect", "https", "configured", {})
	count(remit.hint) == 0 with input as doc(["untrusted"], "read", "file", "none", {})
}

test_facts if {
	not flow.configured with input as doc([], "connect", "https", "", {})
	not flow.leaves with input as doc([], "call", "tool", "configured", {})
}
