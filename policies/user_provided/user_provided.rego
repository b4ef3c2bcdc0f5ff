# Calls go only to user-provided URLs. A URL that the model makes up can carry data
# that it has read to an attacker. The pack only adds denials; load it beside one
# that allows.
package remit

import data.remit.user_provided

deny contains "the call names a URL that is not user-provided: neither the user nor an independent result contained it" if {
	user_provided.leaves
	user_provided.made_up
}

hint contains "use a URL exactly as the user or a result gave it, search for it, or ask the user for it" if {
	user_provided.leaves
	user_provided.made_up
}
