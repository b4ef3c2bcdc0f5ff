package remit_test

import data.remit

file(action, path) := {
	"purpose": "run",
	"tool": {"name": "file_write"},
	"call": {"effect_class": "reversible", "args": {"content": "x"}},
	"access": {"action": action, "resource": {
		"kind": "file", "root": "workspace",
		"segments": split(path, "/"), "name": regex.replace(path, "^.*/", ""),
	}},
}

test_notes_may_be_read_and_written if {
	count(remit.allow) == 1 with input as file("read", "notes/meeting.txt")
	count(remit.allow) == 1 with input as file("write", "notes/todo.txt")
	count(remit.deny) == 0 with input as file("write", "notes/todo.txt")
}

test_what_cannot_be_taken_back_is_not_allowed if {
	call := object.union(file("write", "notes/todo.txt"), {"call": {"effect_class": "pivot"}})
	count(remit.allow) == 0 with input as call
}

test_customers_are_private if {
	count(remit.deny) == 1 with input as file("read", "customers.csv")
	count(remit.deny) == 1 with input as file("delete", "old/customers.csv")
	count(remit.hint) == 1 with input as file("read", "customers.csv")
}

test_config_keeps_its_line if {
	lost := object.union(file("write", "config/site.ini"), {"purpose": "verify"})
	count(remit.ensure) == 1 with input as lost
	kept := object.union(lost, {"call": {"args": {"content": "# Maintained by: us"}}})
	count(remit.ensure) == 0 with input as kept
	elsewhere := object.union(file("write", "notes/todo.txt"), {"purpose": "verify"})
	count(remit.ensure) == 0 with input as elsewhere
}
