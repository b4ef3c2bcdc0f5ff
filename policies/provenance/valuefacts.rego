# Where the values of a call come from. A value is known if a person said it, if it is
# configured, or if only trusted parts of results have it. A trusted value that
# untrusted content names too can be the choice of the author of that content.
package remit.provenance

import data.remit.untrusted

known(origins) if "person" in origins

known(origins) if "config" in origins

known(origins) if {
	"trusted" in origins
	not "untrusted" in origins
}

# Each argument that says who, where, which or how much, and each identifier in a text
# that others read.
doubts contains sprintf("argument %s", [value.pointer]) if {
	some value in input.call.values
	value.role == "authority"
	not known(value.origins)
}

doubts contains sprintf("%s %s in argument %s", [id.kind, id.text, value.pointer]) if {
	some value in input.call.values
	value.role == "content"
	some id in value.identifiers
	not known(id.origins)
}

doubts contains "an argument, because there are too many to look at" if input.call.values_cut

doubts contains "the arguments, because nothing is known of them" if not input.call.values

# An effect of a session that has read untrusted content, which a person does not look
# at later.
guarded if {
	input.purpose in {"run", "apply"}
	untrusted.read
	untrusted.effect
	not later
}

default later := false

# A file of this package beside the pack can say "strict := true". Then a person, or the
# configuration, names one argument at least of each effect that a revert does not take
# back exactly. This also stops a choice among trusted values, and asks more often.
default strict := false

named if {
	some value in input.call.values
	value.role == "authority"
	some origin in value.origins
	origin in {"person", "config"}
}

doubts contains "any argument" if {
	strict
	input.call.effect_class != "reversible"
	not named
}
