# After a session has read untrusted content, an effect runs without approval only if
# the person, the configuration or a trusted part of a result named what it acts on. An
# instruction in untrusted content can then not choose who gets something, where it
# goes, which thing is changed and how much. The pack only adds labels and approval
# requests: load it beside a pack that allows.
package remit

import data.remit.provenance
import data.remit.untrusted

label contains "untrusted" if untrusted.brings

ask contains sprintf("untrusted content was read, and no trusted source named this: %s", [concat(", ", provenance.doubts)]) if {
	provenance.guarded
	count(provenance.doubts) > 0
}

hint contains "use values that the user named, or ask the user for them" if {
	provenance.guarded
	count(provenance.doubts) > 0
}
