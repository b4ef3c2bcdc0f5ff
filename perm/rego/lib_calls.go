package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// libArg is the format of one argument of a library function.
type libArg struct {
	name  string // of the function
	at    int    // position of the argument
	why   string // describes the format
	fails func(string) (fix string)
}

// libArgs returns the arguments of library functions that have a format. The
// type checker knows nothing about the parameters of functions.
func libArgs() []libArg {
	const window = "is one of 1m, 1h and 24h"
	return []libArg{
		{"in_root", 0, "is the name of a root, not a path", badRoot},
		{"below", 0, "is the name of a root, not a path", badRoot},
		{"below", 1, `is the path of a folder in its root, without "/" at its ends and without patterns`, badDir},
		{"has_segment", 0, `is one name of a path, in lower case, and has no "/"`, badLowerSegment},
		{"has_ext", 0, "is in lower case, with its dot", badExt},
		{"https_to", 0, "is the name of a host in lower case, without scheme, port, path or pattern", badDomain},
		{"ran_within", 1, window, badWindow},
		{"failed_within", 1, window, badWindow},
		{"sum_within", 1, window, badWindow},
		{"on", 1, "is the English name of a day", badDay},
	}
}

// libCall checks the constants that a condition gives to a library function.
func (f *fieldCheck) libCall(e *ast.Expr, loc *ast.Location) {
	function, ok := strings.CutPrefix(callName(e), libRef.String()+".")
	if !ok || !f.lib {
		return
	}
	ops := e.Operands()
	for _, arg := range f.libArgs {
		if arg.name != function || arg.at >= len(ops) {
			continue
		}
		for _, text := range f.constants(ops[arg.at]) {
			if fix := arg.fails(text); fix != "" {
				f.found.add(spot(loc), fix, "lib.%s never holds for %q: this argument %s", function, text, arg.why)
			}
		}
	}
	f.pastCall(function, ops, loc)
	if function != "hours" || len(ops) < 3 {
		return
	}
	for _, op := range ops[1:3] {
		if text, ok := f.follow(op).Value.(ast.String); ok {
			f.found.add(spot(loc), "write the whole hour as a number, such as 9", "lib.hours takes hours from 0 to 24, not %q", string(text))
		}
	}
}

func badDir(s string) string {
	bare := strings.Trim(s, "/")
	for _, pattern := range []string{"/**", "/*", "**", "*"} {
		bare = strings.TrimSuffix(bare, pattern)
	}
	bare = strings.TrimPrefix(bare, "./")
	switch {
	case bare == s && s != "":
		return ""
	case bare == "" || bare == ".":
		return "write lib.in_root(ROOT) for all files of a root"
	}
	return "write " + quote(bare)
}

func badLowerSegment(s string) string {
	if strings.Contains(s, "/") {
		return "write lib.below(ROOT, " + quote(strings.Trim(s, "/")) + ")"
	}
	if right := strings.TrimRight(strings.ToLower(s), ". "); right != s {
		return "write " + quote(right)
	}
	return ""
}

// badDomain also refuses patterns: lib.https_to accepts names below a domain
// anyway.
func badDomain(s string) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(s, "*"), ".")
	if fix := badHost(bare); fix != "" || bare == s {
		return fix
	}
	return "write " + quote(bare) + ", which covers the names below it"
}

func badWindow(s string) string {
	windows := []string{"1m", "1h", "24h"}
	if slices.Contains(windows, s) {
		return ""
	}
	return "write " + alternatives(windows)
}

func badDay(s string) string {
	if right := weekday(s); right != s {
		return "write " + quote(right)
	}
	return ""
}
