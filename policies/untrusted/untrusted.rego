# After a session has read untrusted content, each effect needs approval. Such
# content can contain instructions, and a model can follow them. The pack only adds
# labels and approval requests: load it beside a pack that allows.
package remit

import data.remit.untrusted

label contains "untrusted" if untrusted.brings

ask contains "the session has read untrusted content: each effect needs approval from here on" if {
	input.purpose in {"run", "apply"}
	untrusted.read
	untrusted.effect
}

hint contains "say what the call is for; the person who approves it does not know what the session read" if {
	input.purpose in {"run", "apply"}
	untrusted.read
	untrusted.effect
}
