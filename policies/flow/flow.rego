# Private data must not leave after the session has read untrusted content. Such
# content can contain instructions, and a model cannot reliably tell them from
# those of its user. The pack only adds labels and denials; load it beside another.
package remit

import data.remit.flow

label contains "untrusted" if flow.brings_untrusted

label contains "private" if flow.reads_private

deny contains "private data and untrusted content were read: data may leave only to configured destinations" if {
	flow.untrusted
	flow.private
	flow.leaves
	not flow.configured
}

ask contains "private data and untrusted content were read: a person must check what leaves" if {
	flow.untrusted
	flow.private
	flow.leaves
	flow.configured
}

deny contains "untrusted content was read: the arguments of a call that leaves must not name files or secrets" if {
	flow.untrusted
	flow.leaves
	flow.names_private
}

hint contains "finish without sending anything, or ask the person to send it from another session" if {
	flow.untrusted
	flow.leaves
}
