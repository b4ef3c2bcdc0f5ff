# Words for rules of your own:
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
# Each reads as little of the input as it needs, so that what depends on time or
# on counts is only decided anew where a rule asks for it.
package remit.lib

# The access only looks.
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

# A segment of the path has one of the names, which are in lower case; upper
# case, and dots and spaces at the end, make no difference.
has_segment(names) if {
	some segment in input.access.resource.segments
	trim_right(lower(segment), ". ") in names
}

# The file has one of the extensions, such as {".go", ".md"}.
has_ext(exts) if input.access.resource.ext in exts

# The access talks over HTTPS to one of the domains or a name below one. The
# end of another name, such as notexample.com for example.com, is not below it.
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

# The principal has the role.
role(name) if name in input.principal.roles

# The principal acts for somebody else.
delegated if count(input.principal.chain) > 0

# The session has the label.
labelled(name) if name in input.session.labels

# The tool has the tag.
tagged(name) if name in input.tool.tags

# The argument of this name, or otherwise where the call has none: also where
# its arguments are a text.
arg(name, otherwise) := object.get(input.call.args, name, otherwise) if is_object(input.call.args)

arg(_, otherwise) := otherwise if not is_object(input.call.args)

# How many calls of the tool ran in this session.
ran(tool) := object.get(input.session.tools, [tool, "run"], 0)

# How many calls of the tool ran in the last "1m", "1h" or "24h".
ran_within(tool, window) := object.get(input.session.tools, [tool, "windows", window, "run"], 0)

# How many calls of the tool failed in the last "1m", "1h" or "24h".
failed_within(tool, window) := object.get(input.session.tools, [tool, "windows", window, "failed"], 0)

# What a named sum of the tool, such as an amount of money, came to in the last
# "1m", "1h" or "24h".
sum_within(tool, window, name) := object.get(input.session.tools, [tool, "windows", window, "sums", name], 0)

# One of the last calls of the session was one of the tool.
recently(tool) if {
	some call in input.session.recent
	call.tool == tool
}

# The hour of the day in a time zone such as "Europe/Berlin" is from or later,
# and before to. A range such as 22 to 6 goes over midnight. The zone "Local"
# depends on the machine and never matches.
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

# It is one of the days, such as {"Saturday", "Sunday"}, in the time zone.
on(zone, days) if {
	zone != "Local"
	time.weekday([time.parse_rfc3339_ns(input.time), zone]) in days
}
