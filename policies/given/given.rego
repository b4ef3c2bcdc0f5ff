# Calls go only to user-provided URLs. A URL that the model makes up can carry data
# that it has read to an attacker. The pack only adds denials; load it beside one
# that allows.
package remit

import data.remit.given

deny contains "the call names a URL that nobody gave: neither the person, nor a result that did not merely repeat it" if {
	given.leaves
	given.made_up
}

hint contains "use a URL as it stands in what the person wrote or in a result, search for it, or ask the person for it" if {
	given.leaves
	given.made_up
}
