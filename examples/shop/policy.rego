package remit

allow contains "the clerk may look" if input.call.effect_class == "pure"

allow contains "the note can be restored" if {
	input.tool.name == "write_note"
	input.call.effect_class == "reversible"
}

allow contains "a small order" if {
	input.tool.name == "order"
	input.call.args.pieces < 10
}

deny contains "an order of ten pieces or more is for the owner" if {
	input.tool.name == "order"
	input.call.args.pieces >= 10
}
