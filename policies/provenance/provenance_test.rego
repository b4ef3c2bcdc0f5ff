package remit_provenance_test

import data.remit
import data.remit.provenance

doc(labels, class, destination, values) := {
	"purpose": "run",
	"session": {"labels": labels},
	"call": {"effect_class": class, "values": values},
	"tool": {"tags": [], "destination": destination},
	"access": {"action": "call", "resource": {"kind": "tool"}},
}

after := ["private", "untrusted"]

value(role, origins) := {"pointer": "/to", "role": role, "origins": origins, "short": false}

text(origins) := {
	"pointer": "/body", "role": "content", "origins": [], "short": false,
	"identifiers": [{"kind": "email", "text": "eve@evil.example", "origins": origins}],
}

asks(document, doubt) if {
	some reason in remit.ask with input as document
	endswith(reason, sprintf("named this: %s", [doubt]))
	count(remit.ask) == 1 with input as document
	count(remit.hint) == 1 with input as document
}

free(document) if {
	count(remit.ask) == 0 with input as document
	count(remit.hint) == 0 with input as document
}

test_known_values if {
	every origins in [["person"], ["config"], ["trusted"], ["person", "untrusted"], ["config", "untrusted"], ["person", "trusted", "untrusted"]] {
		free(doc(after, "pivot", "third_party", [value("authority", origins)]))
		free(doc(after, "pivot", "third_party", [text(origins)]))
	}
}

test_doubtful_values if {
	every origins in [[], ["untrusted"], ["trusted", "untrusted"]] {
		asks(doc(after, "pivot", "third_party", [value("authority", ["person"]), value("authority", origins)]), "argument /to")
		asks(doc(after, "reversible", "none", [value("authority", origins)]), "argument /to")
		asks(doc(after, "pivot", "third_party", [text(origins)]), "email eve@evil.example in argument /body")
	}
}

test_what_nobody_looked_at if {
	asks(json.remove(doc(after, "pivot", "none", []), ["call/values"]), "the arguments, because nothing is known of them")
	cut := object.union(doc(after, "pivot", "none", []), {"call": {"values_cut": true}})
	asks(cut, "an argument, because there are too many to look at")
}

test_other_roles if {
	free(doc(after, "pivot", "third_party", [value("content", []), value("selector", ["untrusted"])]))
}

test_looking_is_free if {
	free(doc(after, "pure", "none", [value("authority", [])]))
	asks(doc(after, "pure", "third_party", [value("authority", [])]), "argument /to")
}

test_before_is_free if free(doc(["private"], "pivot", "third_party", [value("authority", [])]))

test_other_purposes if {
	every purpose in ["verify", "list", "revert"] {
		free(object.union(doc(after, "pivot", "none", [value("authority", [])]), {"purpose": purpose}))
	}
}

test_label if {
	remit.label == {"untrusted"} with input as object.union(doc([], "pure", "none", []), {"tool": {"tags": ["untrusted"]}})
	remit.label == set() with input as doc([], "pure", "none", [])
}

test_facts if {
	not provenance.later with input as doc(after, "reversible", "none", [])
	provenance.guarded with input as doc(after, "reversible", "none", [])
}

test_strict if {
	every class in ["compensable", "deferrable", "pivot"] {
		trusted := doc(after, class, "none", [value("authority", ["trusted"])])
		free(trusted)
		asks(trusted, "any argument") with provenance.strict as true
		said := doc(after, class, "none", [value("authority", ["trusted"]), value("authority", ["person", "untrusted"])])
		free(said) with provenance.strict as true
	}
	free(doc(after, "reversible", "none", [value("authority", ["trusted"])])) with provenance.strict as true
	asks(doc(after, "pivot", "none", [value("content", ["person"])]), "any argument") with provenance.strict as true
}
