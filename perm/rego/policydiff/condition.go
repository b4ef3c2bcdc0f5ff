package policydiff

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm/rego"
)

// holds reports whether a condition holds for a document, as far as is known.
// It only guides the search: a wrong answer costs tries.
func holds(d document, c rego.Condition) bool {
	values := get(d, c.Path)
	op, counts := strings.CutPrefix(c.Op, "count:")
	if len(values) == 0 && c.Not && (counts || op != "eq" && op != "defined" && op != "same") && !slices.Contains(c.Path, "resource") {
		return false // not before a function of a missing value never holds
	}
	is := false
	for _, v := range values {
		if counts {
			v = float64(length(v))
		}
		is = is || compares(d, op, v, c)
	}
	return is != c.Not
}

func length(v any) int {
	switch v := v.(type) {
	case string:
		return len([]rune(v))
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	default:
		return 0
	}
}

func compares(d document, op string, v any, c rego.Condition) bool {
	switch op {
	case "defined":
		return v != false
	case "same":
		return slices.ContainsFunc(get(d, c.Other), func(o any) bool { return scalar(o) && o == v })
	case "neq":
		return !slices.ContainsFunc(c.Values, func(w any) bool { return scalar(v) && w == v })
	}
	return slices.ContainsFunc(c.Values, func(w any) bool { return comparesOne(op, v, w) })
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	default:
		return true
	}
}

func comparesOne(op string, v, w any) bool {
	if op == "eq" {
		return scalar(v) && v == w
	}
	if a, ok := v.(float64); ok {
		b, ok := w.(float64)
		return ok && order(op, a < b, a == b)
	}
	a, isA := v.(string)
	b, isB := w.(string)
	if !isA || !isB {
		return false
	}
	switch op {
	case "startswith":
		return strings.HasPrefix(a, b)
	case "endswith":
		return strings.HasSuffix(a, b)
	case "contains":
		return strings.Contains(a, b)
	case "glob":
		return globMatches(b, a)
	case "regex":
		re, err := regexp.Compile(b)
		return err == nil && re.MatchString(a)
	default:
		return order(op, a < b, a == b)
	}
}

func order(op string, less, equal bool) bool {
	switch op {
	case "lt":
		return less
	case "lte":
		return less || equal
	case "gt":
		return !less && !equal
	default: // gte
		return !less
	}
}

// globMatches compares with a glob pattern, roughly: what its stars match is
// not restricted by delimiters.
func globMatches(pattern, text string) bool {
	var b strings.Builder
	b.WriteString(`^`)
	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(`.*`)
			i++
		case c == '*':
			b.WriteString(`[^/.]*`)
		case c == '{':
			depth++
			b.WriteString(`(`)
		case c == '}' && depth > 0:
			depth--
			b.WriteString(`)`)
		case c == ',' && depth > 0:
			b.WriteString(`|`)
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	re, err := regexp.Compile(b.String() + `$`)
	return err == nil && re.MatchString(text)
}

// candidates returns values with which a condition holds, most often.
func (g *generator) candidates(d document, c rego.Condition) (all []any) {
	op, counts := strings.CutPrefix(c.Op, "count:")
	positive := !c.Not
	if op == "neq" {
		op, positive = "eq", !positive
	}
	var now string
	if old := get(d, c.Path); len(old) > 0 {
		now, _ = old[0].(string)
	}
	switch op {
	case "defined":
		all = append(slices.Clone(g.pool[key(c.Path)]), true, "x", 1.0, []any{"x"})
		if c.Not {
			all = []any{false}
		}
	case "same":
		all = append(all, get(d, c.Other)...)
	}
	for _, w := range c.Values {
		switch w := w.(type) {
		case float64:
			all = append(all, numbers(op, w, positive)...)
		case string:
			all = append(all, g.texts(op, now, w, positive)...)
		case bool:
			all = append(all, w == positive)
		case nil:
			all = append(all, nil)
		}
	}
	if !positive && !counts {
		all = append(all, g.pool[key(c.Path)]...)
	}
	if counts {
		return lengths(all, get(d, c.Path))
	}
	return all
}

func numbers(op string, n float64, positive bool) []any {
	switch {
	case op == "eq" && positive:
		return []any{n}
	case op == "eq":
		return []any{n - 1, n + 1}
	case op == "gt" == positive && (op == "gt" || op == "lte"), op == "lte" && !positive:
		return []any{n + 1, n + 2, n + 10}
	case op == "gte" && positive, op == "lt" && !positive:
		return []any{n, n + 1, n + 10}
	case op == "lt" && positive, op == "gte" && !positive:
		return []any{n - 1, n - 2, n / 2}
	default:
		return []any{n, n - 1, n / 2}
	}
}

// lengths turns numbers into values of that length.
func lengths(all []any, old []any) (out []any) {
	_, isText := append(slices.Clone(old), nil)[0].(string)
	for _, v := range all {
		n, ok := v.(float64)
		if !ok || n < 0 || n > 100_000 {
			continue
		}
		text := strings.Repeat("x", int(n))
		list := make([]any, min(int(n), 300))
		for i := range list {
			list[i] = "x" + string(rune('a'+i%26))
		}
		if isText {
			out = append(out, text)
		} else {
			out = append(out, list, text)
		}
	}
	return out
}

// texts returns texts that compare with w in a way, or just fail to.
func (g *generator) texts(op, now, w string, positive bool) []any {
	short := w[:max(0, len(w)-1)]
	trimmed := strings.TrimRight(w, "/")
	switch {
	case op == "eq" && positive:
		return []any{w}
	case op == "eq":
		return []any{w + "x", short, "x" + w, parent(w), g.other(w)}
	case op == "startswith" && positive:
		return []any{w + now, w + "a", w + "a/b.txt", w + "a.txt", w}
	case op == "startswith":
		return []any{short, trimmed, trimmed + "x/a.txt", "a/" + w + "a.txt", parent(w) + "/a.txt", g.other(w)}
	case op == "endswith" && positive:
		return []any{"a" + w, now + w, strings.TrimSuffix(now, ext(now)) + w, w, "a/b" + w}
	case op == "contains" && positive:
		return []any{"a" + w + "b", w, now + w, w + now}
	case op == "endswith", op == "contains":
		return []any{w + "x", short, "x", g.other(w)}
	case op == "glob" && positive:
		return []any{globText(g.Rand, w), globText(g.Rand, w)}
	case op == "glob":
		text := globText(g.Rand, w)
		return []any{text + "/b", text + "x", "x/" + text, strings.Replace(text, "/", "/x/", 1), parent(text), g.other(w)}
	case op == "regex" && positive:
		return []any{regexText(g.Rand, w), regexText(g.Rand, w) + "a"}
	case op == "regex":
		return []any{"x", regexText(g.Rand, w) + "x", g.other(w)}
	default: // texts in order, such as times
		return g.inOrder(op, w, positive)
	}
}

func parent(w string) string {
	before, _, _ := strings.Cut(w, "/")
	if i := strings.LastIndexByte(strings.TrimRight(w, "/"), '/'); i > 0 {
		before = w[:i]
	}
	return before
}

func ext(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && !strings.Contains(name[i:], "/") {
		return name[i:]
	}
	return ""
}

// other returns a text that differs from w.
func (g *generator) other(w string) string {
	return []string{"a", "notes.md", "other", "b" + w}[g.IntN(4)]
}

// inOrder returns texts around w. A time stays a time.
func (g *generator) inOrder(_, w string, _ bool) []any {
	out := []any{w, w + "a"}
	for i := range len(w) {
		if c := w[i]; c >= '0' && c <= '9' {
			for _, by := range []byte{c - 1, c + 1} {
				if by >= '0' && by <= '9' {
					out = append(out, w[:i]+string(by)+w[i+1:])
				}
			}
		}
	}
	return out
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }
