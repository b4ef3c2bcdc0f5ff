# Private data must not leave after the session has read untrusted content. Such
# content can contain instructions, and a model cannot reliably tell them from
# those of its user. The pack only adds labels and denials; load it beside another.
package remit

import data.remit.flow

label contains "untrusted" if flow.brings_untrusted

label contains "private" if flow.reads_private

deny contains "private data was read and so was content that others wrote: nothing may leave for a place that nobody configured" if {
	flow.untrusted
	flow.private
	flow.leaves
	not flow.configured
}

ask contains "private data was read and so was content that others wrote: a person has to look at what leaves" if {
	flow.untrusted
	flow.private
	flow.leaves
	flow.configured
}

deny contains "content that others wrote was read: a call that leaves may not name files or secrets in its arguments" if {
	flow.untrusted
	flow.leaves
	flow.names_private
}

hint contains "finish without sending anything, or ask the person to send it from another session" if {
	flow.untrusted
	flow.leaves
}
