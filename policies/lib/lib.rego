# Helpers for custom rules:
#
#	package remit
#
#	import data.remit.lib
#
#	allow contains "docs may be changed" if {
#		lib.changes
#		lib.below("workspace", "docs")
#		input.call.effect_class == "reversible"
#	}
#
# Each reads as little of the input as it needs. So only a rule that uses time or
# counts makes a decision depend on them.
package remit.lib

# The access only reads.
looks if input.access.action in {"read", "list"}

# The access changes a resource.
changes if input.access.action in {"write", "delete"}

# The resource is a file of the root.
in_root(root) if {
	input.access.resource.kind == "file"
	input.access.resource.root == root
}

# The resource is the folder of the root, or a file below it. A path such as
# "docs" does not match "docs2/a".
below(root, dir) if {
	in_root(root)
	input.access.resource.path == dir
}

below(root, dir) if {
	in_root(root)
	startswith(input.access.resource.path, concat("", [dir, "/"]))
}

# A segment of the path has one of the names, which are in lower case. Upper case,
# and trailing dots and spaces, make no difference.
has_segment(names) if {
	some segment in input.access.resource.segments
	trim_right(lower(segment), ". ") in names
}

# The file has one of the extensions, such as {".go", ".md"}.
has_ext(exts) if input.access.resource.ext in exts

# The access uses HTTPS to one of the domains or a name below one. Another name with
# the same end, such as notexample.com for example.com, does not match.
https_to(domains) if {
	to_https
	input.access.resource.host in domains
}

https_to(domains) if {
	to_https
	some domain in domains
	endswith(input.access.resource.host, concat("", [".", domain]))
}

to_https if {
	input.access.action == "connect"
	input.access.resource.kind == "https"
}

# A program in the sandbox reaches a source host by HTTPS at the usual port.
from_source if {
	to_https
	input.access.resource.port == 443
	input.access.resource.host in source_hosts
	input.tool.confinement == "sandbox"
}

# Hosts from which package managers install. Each of them sees the names that a
# program asks for, and accepts uploads from accounts with a credential there.
source_hosts := {
	"registry.npmjs.org", "registry.yarnpkg.com",
	"pypi.org", "files.pythonhosted.org",
	"proxy.golang.org", "sum.golang.org",
	"index.crates.io", "static.crates.io",
	"rubygems.org", "index.rubygems.org",
	"repo.maven.apache.org", "repo1.maven.org",
}

# The principal has the role.
role(name) if name in input.principal.roles

# The principal acts for another one.
delegated if input.principal.chain[0]

# The session has the label.
labelled(name) if name in input.session.labels

# The tool has the tag.
tagged(name) if name in input.tool.tags

# The argument of this name, or otherwise if the call has none, also if its
# arguments are a text.
arg(name, otherwise) := object.get(input.call.args, name, otherwise) if is_object(input.call.args)

arg(_, otherwise) := otherwise if not is_object(input.call.args)

# The number of calls of the tool that ran in this session.
ran(tool) := object.get(input.session.tools, [tool, "run"], 0)

# The number of calls of the tool that ran in the last "1m", "1h" or "24h".
ran_within(tool, window) := object.get(input.session.tools, [tool, "windows", window, "run"], 0)

# The number of calls of the tool that failed in the last "1m", "1h" or "24h".
failed_within(tool, window) := object.get(input.session.tools, [tool, "windows", window, "failed"], 0)

# The value of a named sum of the tool, such as an amount of money, in the last "1m",
# "1h" or "24h".
sum_within(tool, window, name) := object.get(input.session.tools, [tool, "windows", window, "sums", name], 0)

# One of the recent calls of the session was one of the tool.
recently(tool) if {
	some call in input.session.recent
	call.tool == tool
}

# An earlier call of the session matches the pattern, such as {"tool": "mail_*",
# "effect": "pivot", "resource": "https://example.com/**", "outcome": "done"}. Each
# member can be missing. Without outcome, calls match whose code ran, with any
# outcome: not those that were denied.
happened(pattern) if remit.past_count(past, pattern, "", now) > 0

# Earlier calls match both patterns, and the last one of a ended before the last
# one of b.
before(a, b) if remit.past_before(past, a, b)

# The number of earlier calls that match, in a window: a duration such as "10m"
# or "24h", a number of calls such as "20", or "" for the whole session.
count(pattern, window) := remit.past_count(past, pattern, window, now)

# The sum of an argument of these calls, such as "/amount". A missing argument is 0.
# One that is no number from 0 is an error, so the call is denied.
sum(pattern, argument, window) := remit.past_sum(past, pattern, argument, window, now, null)

# The sum, with the same argument of the call that is decided.
sum_with(pattern, argument, window) := remit.past_sum(past, pattern, argument, window, now, own)

own := input.call.args

own := null if not input.call.args

# The list of a test. The runtime has too many calls for one, and answers from
# its index.
past := input.session.history

past := null if not input.session.history

now := input.time

now := "" if not input.time

# The hour of the day in a time zone such as "Europe/Berlin" is at least from and
# before to. A range such as 22 to 6 includes midnight. The zone "Local" depends
# on the machine and never matches.
hours(zone, from, to) if {
	from <= to
	hour(zone) >= from
	hour(zone) < to
}

hours(zone, from, to) if {
	from > to
	hour(zone) >= from
}

hours(zone, from, to) if {
	from > to
	hour(zone) < to
}

hour(zone) := clock[0] if {
	zone != "Local"
	clock := time.clock([time.parse_rfc3339_ns(input.time), zone])
}

# The day in the time zone is one of the days, such as {"Saturday", "Sunday"}.
on(zone, days) if {
	zone != "Local"
	time.weekday([time.parse_rfc3339_ns(input.time), zone]) in days
}
