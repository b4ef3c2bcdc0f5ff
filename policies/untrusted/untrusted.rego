# After a session read content that others wrote, a person approves each effect.
# Such content can hold orders, and a model can follow them. The pack only adds
# labels and questions: load it beside a pack that allows.
package remit

import data.remit.untrusted

label contains "untrusted" if untrusted.brings

ask contains "the session read content that others wrote: a person approves each effect from here on" if {
	input.purpose in {"run", "apply"}
	untrusted.read
	untrusted.effect
}

hint contains "say what the call is for; the person who approves it does not know what the session read" if {
	input.purpose in {"run", "apply"}
	untrusted.read
	untrusted.effect
}
