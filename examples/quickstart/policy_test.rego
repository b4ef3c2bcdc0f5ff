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

test_what_cannot_be_reverted_is_not_allowed if {
	call := object.union(file("write", "notes/todo.txt"), {"call": {"effect_class": "pivot"}})
	count(remit.allow) == 0 with input as call
}

test_customers_are_private if {
	count(remit.deny) == 1 with input as file("read", "customers.csv")
	count(remit.deny) == 1 with input as file("delete", "old/customers.csv")
	count(remit.hint) == 1 with input as file("read", "customers.csv")
}

test_programs_run_in_the_sandbox if {
	program := {"access": {"action": "execute", "resource": {"kind": "exec", "program": "sed"}}}
	count(remit.allow) == 1 with input as object.union(program, {"tool": {"confinement": "sandbox"}})
	count(remit.allow) == 0 with input as object.union(program, {"tool": {"confinement": "trusted"}})
}

left(path, fields) := {"purpose": "verify", "changes": [object.union(fields, {
	"kind": "write",
	"resource": {"segments": split(path, "/"), "ext": regex.replace(path, "^.*[.]", ".")},
})]}

test_config_keeps_its_line if {
	count(remit.ensure) == 1 with input as left("config/site.ini", {"after": "t", "text": "name = My Shop"})
	count(remit.ensure) == 1 with input as left("config/site.ini", {"after": "t", "text": "", "binary": true})
	count(remit.ensure) == 0 with input as left("config/site.ini", {"after": "t", "text": "# Maintained by: us"})
	count(remit.ensure) == 0 with input as left("config/site.ini", {})
	count(remit.ensure) == 0 with input as left("notes/todo.txt", {"after": "t", "text": "x"})
}
