package remit

allow contains "notes may be added: that can be reverted" if {
	input.tool.name == "add_note"
	input.access.resource.root == "notes"
	input.call.effect_class == "reversible"
}
