package remit

allow contains "notes may be written: that can be reverted" if {
	input.access.action == "write"
	input.access.resource.root == "notes"
	input.call.effect_class == "reversible"
}

deny contains "drafts are their author's" if startswith(input.access.resource.name, "draft-")
