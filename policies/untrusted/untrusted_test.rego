package remit_untrusted_test

import data.remit
import data.remit.untrusted

doc(labels, action, kind, class, destination) := {
	"purpose": "run",
	"session": {"labels": labels},
	"call": {"effect_class": class},
	"tool": {"tags": [], "destination": destination},
	"access": {"action": action, "resource": {"kind": kind}},
}

read := ["private", "untrusted"]

asked := {"the session has read untrusted content: each effect needs approval from here on"}

asks(document) if {
	remit.ask == asked with input as document
	count(remit.hint) == 1 with input as document
}

free(document) if {
	count(remit.ask) == 0 with input as document
	count(remit.hint) == 0 with input as document
}

test_labels if {
	remit.label == {"untrusted"} with input as doc([], "connect", "https", "pivot", "configured")
	remit.label == {"untrusted"} with input as doc([], "read", "mcp", "pure", "none")
	remit.label == {"untrusted"} with input as {"tool": {"tags": ["untrusted"]}}
	remit.label == set() with input as doc([], "write", "file", "reversible", "none")
}

test_effects_ask if {
	every action in ["write", "delete", "execute"] {
		every class in ["pure", "reversible", "compensable", "deferrable", "pivot"] {
			asks(doc(read, action, "file", class, "none"))
		}
	}
	every class in ["reversible", "compensable", "deferrable", "pivot"] {
		asks(doc(read, "call", "tool", class, "none"))
	}
	every action in ["connect", "use"] {
		asks(doc(read, action, "https", "pure", "configured"))
	}
	asks(doc(read, "call", "mcp", "pure", "none"))
	every destination in ["third_party", "model_chosen"] {
		asks(doc(read, "call", "tool", "pure", destination))
		asks(doc(read, "read", "file", "pure", destination))
	}
}

test_program_changes_ask if {
	asks(object.union(doc(read, "write", "file", "reversible", "none"), {"purpose": "apply"}))
}

test_looking_is_free if {
	every action in ["read", "list", "ask"] {
		every class in ["pure", "reversible"] {
			free(doc(read, action, "file", class, "none"))
		}
	}
	free(doc(read, "call", "tool", "pure", "none"))
	free(doc(read, "call", "tool", "pure", "configured"))
}

test_before_is_free if {
	every labels in [[], ["private"]] {
		every class in ["pure", "reversible", "pivot"] {
			free(doc(labels, "write", "file", class, "model_chosen"))
		}
	}
}

test_other_purposes_are_free if {
	every purpose in ["verify", "list", "revert"] {
		free(object.union(doc(read, "write", "file", "reversible", "none"), {"purpose": purpose}))
	}
}

test_facts if {
	untrusted.read with input as doc(read, "read", "file", "pure", "none")
	not untrusted.effect with input as doc(read, "read", "file", "pure", "none")
}
