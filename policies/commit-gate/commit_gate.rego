# Effects that a revert takes back run without approval, also after the session has read
# untrusted content. A person looks at all of them once, before the commit. Other
# effects need known values, as in the pack provenance, which belongs to this one. The
# pack only adds labels and approval requests: load it beside a pack that allows.
package remit

import data.remit.untrusted

ask_commit contains "untrusted content was read: a person looks at the changes once, before they stay" if {
	untrusted.read
	some effect in input.txn.effects
	effect.class == "reversible"
}

ask_commit contains "untrusted content was read, and there are too many changes to list" if {
	untrusted.read
	input.txn.effects_cut
}
