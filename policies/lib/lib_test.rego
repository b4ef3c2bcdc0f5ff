package remit_lib_test

import data.remit.lib

file(action, path) := {"access": {"action": action, "resource": {
	"kind": "file", "root": "workspace", "path": path, "segments": split(path, "/"), "ext": ".go",
}}}

web(host) := {"access": {"action": "connect", "resource": {"kind": "https", "host": host}}}

test_actions if {
	lib.looks with input as file("read", "a")
	not lib.looks with input as file("write", "a")
	lib.changes with input as file("delete", "a")
	not lib.changes with input as file("list", "a")
}

test_paths if {
	lib.in_root("workspace") with input as file("read", "a")
	not lib.in_root("home") with input as file("read", "a")
	lib.below("workspace", "docs") with input as file("read", "docs")
	lib.below("workspace", "docs") with input as file("read", "docs/a/b")
	not lib.below("workspace", "docs") with input as file("read", "docs2/a")
	not lib.below("home", "docs") with input as file("read", "docs/a")
	lib.has_segment({".git"}) with input as file("read", "a/.GIT /b")
	not lib.has_segment({".git"}) with input as file("read", "a/git/b")
	lib.has_ext({".go"}) with input as file("read", "a.go")
	not lib.has_ext({".md"}) with input as file("read", "a.go")
}

test_network if {
	lib.https_to({"example.com"}) with input as web("example.com")
	lib.https_to({"example.com"}) with input as web("api.example.com")
	not lib.https_to({"example.com"}) with input as web("notexample.com")
	not lib.https_to({"example.com"}) with input as {"access": {"action": "connect", "resource": {"kind": "http", "host": "example.com"}}}
}

program(host, port) := {
	"tool": {"confinement": "sandbox"},
	"access": {"action": "connect", "method": "CONNECT", "resource": {"kind": "https", "host": host, "port": port}},
}

test_sources if {
	lib.from_source with input as program("pypi.org", 443)
	every host in {"evil-pypi.org", "a.pypi.org", "github.com", "pypi.org.example.com"} {
		not lib.from_source with input as program(host, 443)
	}
	not lib.from_source with input as program("pypi.org", 22)
	not lib.from_source with input as object.union(program("pypi.org", 443), {"tool": {"confinement": "handles"}})
	not lib.from_source with input as object.union(program("pypi.org", 443), {"access": {"resource": {"kind": "http"}}})
}

test_who if {
	lib.role("dev") with input as {"principal": {"roles": ["dev"]}}
	not lib.role("ops") with input as {"principal": {"roles": ["dev"]}}
	lib.delegated with input as {"principal": {"chain": ["ann"]}}
	not lib.delegated with input as {"principal": {"roles": []}}
	lib.labelled("private") with input as {"session": {"labels": ["private"]}}
	not lib.labelled("private") with input as {"session": {"labels": []}}
	lib.tagged("web") with input as {"tool": {"tags": ["web"]}}
	not lib.tagged("web") with input as {"tool": {"tags": []}}
}

test_args if {
	lib.arg("n", 0) == 7 with input as {"call": {"args": {"n": 7}}}
	lib.arg("m", 0) == 0 with input as {"call": {"args": {"n": 7}}}
	lib.arg("m", 0) == 0 with input as {"call": {"args": "text"}}
	lib.arg("m", 0) == 0 with input as {"call": {"args": null}}
}

counts := {"session": {
	"tools": {"pay": {"run": 3, "windows": {"1h": {"run": 2, "failed": 1, "sums": {"eur": 12.5}}}}},
	"recent": [{"tool": "pay", "status": "done"}],
}}

test_counts if {
	lib.ran("pay") == 3 with input as counts
	lib.ran("look") == 0 with input as counts
	lib.ran_within("pay", "1h") == 2 with input as counts
	lib.ran_within("pay", "1m") == 0 with input as counts
	lib.failed_within("pay", "1h") == 1 with input as counts
	lib.sum_within("pay", "1h", "eur") == 12.5 with input as counts
	lib.sum_within("pay", "1h", "usd") == 0 with input as counts
	lib.recently("pay") with input as counts
	not lib.recently("look") with input as counts
}

# A Saturday, 23:30 in UTC, Sunday 01:30 in Berlin.
late := {"time": "2026-07-04T23:30:00Z"}

test_time if {
	lib.hours("UTC", 22, 24) with input as late
	not lib.hours("UTC", 8, 23) with input as late
	lib.hours("UTC", 22, 6) with input as late
	lib.hours("Europe/Berlin", 22, 6) with input as late
	not lib.hours("Europe/Berlin", 22, 1) with input as late
	not lib.hours("Local", 0, 24) with input as late
	lib.on("UTC", {"Saturday"}) with input as late
	lib.on("Europe/Berlin", {"Sunday"}) with input as late
	not lib.on("Local", {"Saturday", "Sunday"}) with input as late
}

# A test lists the earlier calls of the session, oldest first.
history := {"time": "2026-01-02T12:00:00Z", "session": {"history": [
	{"tool": "mail_read", "outcome": "done", "effect": "pure", "resources": ["https://mail.example/a"], "args": {}, "at": "2026-01-02T11:00:00Z"},
	{"tool": "edit", "outcome": "failed", "effect": "reversible", "resources": ["file://workspace/a"], "args": {"size": 0.1}, "at": "2026-01-02T11:55:00Z"},
	{"tool": "check", "outcome": "done", "effect": "pure", "resources": [], "args": {"size": 0.2}, "at": "2026-01-02T11:58:00Z"},
	{"tool": "mail_send", "outcome": "denied", "effect": "pivot", "resources": ["https://mail.example/b"], "args": {"size": 7}, "at": "2026-01-02T11:59:00Z"},
]}}

test_history if {
	lib.happened({"tool": "mail_*"}) with input as history
	lib.happened({"resource": "https://mail.example/**", "outcome": "denied"}) with input as history
	not lib.happened({"tool": "mail_send"}) with input as history
	not lib.happened({"tool": "edit", "outcome": "done"}) with input as history
	lib.before({"tool": "edit"}, {"tool": "check", "outcome": "done"}) with input as history
	not lib.before({"tool": "check"}, {"tool": "edit"}) with input as history
	not lib.before({"tool": "absent"}, {"tool": "edit"}) with input as history
	lib.count({}, "") == 3 with input as history
	lib.count({}, "10m") == 2 with input as history
	lib.count({"effect": "pure"}, "2") == 1 with input as history
	lib.past == null with input as {}
	lib.now == "" with input as {}
	lib.own == null with input as {}
}

test_history_sum if {
	lib.sum({}, "/size", "") == 0.3 with input as history
	lib.sum({"outcome": "denied"}, "/size", "10m") == 7 with input as history
	lib.sum({"tool": "absent"}, "/size", "1") == 0 with input as history
	lib.sum({}, "/size", "2") == 0.2 with input as history
	lib.sum_with({}, "/size", "") == 0.3 with input as history
	lib.sum_with({}, "/size", "") == 1.3 with input as object.union(history, {"call": {"args": {"size": 1}}})
}
