package rego

import (
	"strings"
	"unicode"
)

// form is a format that every text of a field has.
type form struct {
	why   string                    // describes the format
	fails func(string) (fix string) // suggested replacement; "" for a text in the format
	parts func(string) (fix string) // the same for a prefix of a text; nil: unknown
}

// forms returns the fields whose texts have a format, by their path below
// input.
func forms() map[string]form {
	all := map[string]form{
		"time": {"is a whole time such as 2026-01-02T03:04:05Z", badTime, nil},
	}
	for _, resource := range []string{"access.resource.", "changes[].resource."} {
		all[resource+"path"] = form{`is relative to its root and never begins or ends with "/"`, badWholePath, badPath}
		all[resource+"name"] = form{`is the last segment of a path and has no "/"`, badName, nil}
		all[resource+"segments[]"] = form{`is one name of a path and has no "/"`, badSegment, nil}
		all[resource+"ext"] = form{"is in lower case, with its dot", badExt, nil}
		all[resource+"host"] = form{"is the name of a host in lower case, without scheme, port or path", badHost, nil}
		all[resource+"scheme"] = form{`is a name such as https, without "://"`, cutAt("://"), nil}
		all[resource+"root"] = form{"is the name of a root, not a path", badRoot, nil}
		all[resource+"text"] = form{"is the whole resource, such as file://workspace/a.txt", badText, badTextStart}
		all[resource+"statement"] = form{"is in lower case", badLower, nil}
	}
	return all
}

func quote(s string) string { return `"` + s + `"` }

func badPath(s string) string {
	switch {
	case strings.HasPrefix(s, "/"):
		return "write " + quote(strings.TrimLeft(s, "/"))
	case strings.HasPrefix(s, "./"), strings.HasPrefix(s, "../"):
		return "write the path from the root on, without . and .."
	}
	return ""
}

// badWholePath also refuses a final slash, which a prefix can have.
func badWholePath(s string) string {
	if fix := badPath(s); fix != "" || !strings.HasSuffix(s, "/") {
		return fix
	}
	return "write startswith(input.access.resource.path, " + quote(s) + "), or leave the last slash out"
}

func badName(s string) string {
	if !strings.Contains(s, "/") {
		return ""
	}
	return "compare input.access.resource.path with " + quote(strings.TrimLeft(s, "/"))
}

func badSegment(s string) string {
	if s == "." || s == ".." {
		return "leave the condition out: a resource has its canonical path, without . and .."
	}
	if !strings.Contains(s, "/") {
		return ""
	}
	return "compare input.access.resource.path, such as startswith(input.access.resource.path, " + quote(strings.Trim(s, "/")+"/") + ")"
}

func badExt(s string) string {
	right := strings.ToLower(s)
	if s != "" && !strings.HasPrefix(s, ".") {
		right = "." + right
	}
	if right == s {
		return ""
	}
	return "write " + quote(right)
}

func badHost(s string) string {
	right := strings.ToLower(s)
	if _, after, found := strings.Cut(right, "://"); found {
		right = after
	}
	right, _, _ = strings.Cut(right, "/")
	if name, port, found := strings.Cut(right, ":"); found && !strings.Contains(port, ":") && !strings.HasPrefix(right, "[") {
		right = name
	}
	if right == s {
		return ""
	}
	return "write " + quote(right)
}

func cutAt(sep string) func(string) string {
	return func(s string) string {
		if before, _, found := strings.Cut(s, sep); found {
			return "write " + quote(before)
		}
		return ""
	}
}

func badRoot(s string) string {
	if strings.Contains(s, "/") {
		return `write the name that --root gives the folder, such as "workspace"`
	}
	return ""
}

func badText(s string) string {
	if after, file := strings.CutPrefix(s, "file:///"); file {
		return "write " + quote("file://"+after) + ": the first name is the root"
	}
	if strings.Contains(s, "://") {
		return ""
	}
	return "write it whole, or compare input.access.resource.path or name"
}

// badTextStart refuses beginnings that are of a path and not of a resource.
func badTextStart(s string) string {
	if strings.HasPrefix(s, "file:///") {
		return badText(s)
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") {
		return "compare input.access.resource.path"
	}
	return ""
}

func badLower(s string) string {
	if right := strings.ToLower(s); right != s {
		return "write " + quote(right)
	}
	return ""
}

func badTime(s string) string {
	if len(s) >= 4 && strings.IndexFunc(s[:4], func(r rune) bool { return !unicode.IsDigit(r) }) < 0 {
		return ""
	}
	return "take the parts of a day by time.clock([time.parse_rfc3339_ns(input.time), \"UTC\"])[0], or lib.hours"
}
