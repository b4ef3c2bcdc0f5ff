package policydiff_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// condition is one condition of a rule: its text, what makes it hold, and what
// brings a call to its bound.
type condition struct {
	kind   string
	words  []string // what it compares with
	n      int
	not    bool
	helper string // name of the helper that holds the text; empty: written in the rule
}

type rule struct {
	set, reason string
	all         []condition
}

type policy struct {
	rules []rule
	data  map[string][]string // tables
}

// conditionKinds lists the kinds, with how many words each compares with.
func conditionKinds() []string {
	return []string{
		"tool", "tool", "tools", "table", "prefix", "dir", "segment", "glob", "ext", "name", "exts", "host", "hosts", "suffix", "program", "flag",
		"amount", "mode", "to", "title", "label", "run", "ownrun", "hour", "class", "classes", "tag", "role", "action", "actions", "txn", "confinement", "libbelow", "libarg",
	}
}

func (w *sampler) condition(p *policy) condition {
	kinds := conditionKinds()
	c := condition{kind: kinds[w.IntN(len(kinds))]}
	switch c.kind {
	case "tool", "run", "hour":
		c.words = w.some("tool", 1)
	case "tools":
		c.words = w.some("tool", 2+w.IntN(3))
	case "table":
		name := fmt.Sprint("t", len(p.data))
		p.data[name] = w.some("tool", 2+w.IntN(3))
		c.words = []string{name}
	case "prefix":
		c.words = []string{[]string{"mail_", "file_", "db_"}[w.IntN(3)]}
	case "dir", "segment", "libbelow", "glob":
		c.words = w.some("dir", 1)
	case "exts":
		c.words = w.some("ext", 2+w.IntN(2))
	case "hosts":
		c.words = w.some("host", 2+w.IntN(2))
	case "classes":
		c.words = w.some("class", 2)
	case "actions":
		c.words = w.some("action", 2)
	case "ext", "host", "suffix", "program", "flag", "mode", "label", "class", "tag", "role", "action", "confinement":
		c.words = w.some(c.kind, 1)
	case "name":
		c.words = w.some("file", 1)
	case "to":
		c.words = []string{[]string{"@corp.example", "@other.example"}[w.IntN(2)]}
	case "libarg":
		c.words = w.some("mode", 1)
	}
	switch c.kind {
	case "amount":
		c.n = 5 + w.IntN(100)
	case "title":
		c.n = 3 + w.IntN(30)
	case "run", "hour", "ownrun", "txn":
		c.n = 1 + w.IntN(20)
	}
	c.not = w.IntN(6) == 0
	return c
}

func quoted(words []string) string {
	all := make([]string, len(words))
	for i, x := range words {
		all[i] = fmt.Sprintf("%q", x)
	}
	return strings.Join(all, ", ")
}

// text returns the source of a condition, without its not.
func (c condition) text() string {
	one, of := "", quoted(c.words)
	if len(c.words) > 0 {
		one = fmt.Sprintf("%q", c.words[0])
	}
	switch c.kind {
	case "tool":
		return "input.tool.name == " + one
	case "tools":
		return "input.tool.name in {" + of + "}"
	case "table":
		return "input.tool.name in data.tables." + c.words[0]
	case "prefix":
		return "startswith(input.tool.name, " + one + ")"
	case "dir":
		return fmt.Sprintf("startswith(input.access.resource.path, %q)", c.words[0]+"/")
	case "segment":
		return fmt.Sprintf("input.access.resource.segments[0] == %q", strings.Split(c.words[0], "/")[0])
	case "glob":
		return fmt.Sprintf("glob.match(%q, [\"/\"], input.access.resource.path)", c.words[0]+[]string{"/*", "/**"}[c.n%2])
	case "ext", "name", "host", "program":
		return "input.access.resource." + c.kind + " == " + one
	case "exts":
		return "input.access.resource.ext in {" + of + "}"
	case "hosts":
		return "input.access.resource.host in {" + of + "}"
	case "suffix":
		return "endswith(input.access.resource.host, " + one + ")"
	case "flag":
		return one + " in input.access.resource.argv"
	case "amount":
		return fmt.Sprintf("input.call.args.amount > %d", c.n)
	case "mode":
		return "input.call.args.mode == " + one
	case "to":
		return "endswith(input.call.args.to, " + one + ")"
	case "title":
		return fmt.Sprintf("count(input.call.args.title) > %d", c.n)
	case "label":
		return one + " in input.session.labels"
	case "run":
		return fmt.Sprintf("input.session.tools[%s].run >= %d", one, c.n)
	case "ownrun":
		return fmt.Sprintf("input.session.tools[input.tool.name].run >= %d", c.n)
	case "hour":
		return fmt.Sprintf("input.session.tools[%s].windows[\"1h\"].run >= %d", one, c.n)
	case "class":
		return "input.call.effect_class == " + one
	case "classes":
		return "input.call.effect_class in {" + of + "}"
	case "tag":
		return one + " in input.tool.tags"
	case "role":
		return "lib.role(" + one + ")"
	case "action":
		return "input.access.action == " + one
	case "actions":
		return "input.access.action in {" + of + "}"
	case "txn":
		return fmt.Sprintf("input.txn.calls >= %d", c.n)
	case "confinement":
		return "input.tool.confinement == " + one
	case "libbelow":
		return "lib.below(\"workspace\", " + one + ")"
	default: // libarg
		return "lib.arg(\"mode\", \"fast\") == " + one
	}
}

// meet makes a condition hold, or fail if it is negated. It brings counts to
// their bound.
func (w *sampler) meet(c condition, p *policy, k *call) {
	if c.not != (w.IntN(12) == 0) {
		if c.n > 0 {
			w.count(c, k, -1)
		}
		return // most calls fail a condition by themselves
	}
	first := func() string { return c.words[w.IntN(len(c.words))] }
	switch c.kind {
	case "tool", "tools":
		k.tool = first()
	case "table":
		if rows := p.data[c.words[0]]; len(rows) > 0 {
			k.tool = rows[w.IntN(len(rows))]
		}
	case "prefix":
		k.tool = c.words[0] + []string{"send", "write", "query"}[w.IntN(3)]
	case "dir", "segment", "libbelow", "glob":
		k.file(c.words[0] + []string{"/", "/deep/", "/x/y/"}[w.IntN(3)] + path.Base(k.orFile(w)))
	case "ext", "exts":
		name := k.orFile(w)
		k.file(strings.TrimSuffix(name, path.Ext(name)) + "x" + first())
	case "name":
		k.file(path.Join(path.Dir(k.orFile(w)), c.words[0]))
	case "host", "hosts":
		k.host(first())
	case "suffix":
		k.host("x" + c.words[0])
	case "program":
		argv := k.argv
		k.program(c.words[0])
		k.argv = append(k.argv, argv[min(1, len(argv)):]...)
	case "flag":
		if k.argv == nil {
			k.program(w.word("program"))
		}
		k.argv = append(k.argv, c.words[0])
	case "mode", "libarg":
		k.args["mode"] = c.words[0]
	case "to":
		k.args["to"] = "ann" + c.words[0]
	case "label":
		k.labels = append(k.labels, c.words[0])
	case "class", "classes":
		k.class = first()
	case "tag":
		k.tags = append(k.tags, c.words[0])
	case "role":
		k.roles = append(k.roles, c.words[0])
	case "action", "actions":
		k.action = first()
	case "confinement":
		k.confinement = c.words[0]
	default:
		w.count(c, k, w.IntN(3))
	}
}

// count brings a number near the bound of a condition.
func (w *sampler) count(c condition, k *call, by int) {
	switch n := max(c.n+by, 0); c.kind {
	case "amount":
		k.args["amount"] = n + 1
	case "title":
		k.args["title"] = strings.Repeat("t", n+1)
	case "run":
		k.run[c.words[0]] = n
	case "ownrun":
		k.run[k.tool] = n
	case "hour":
		k.lastHour[c.words[0]] = n
	case "txn":
		k.txnCalls = n
	}
}

func (c *call) orFile(w *sampler) string {
	if p := c.path(); p != "" {
		return p
	}
	return w.word("dir") + "/" + w.word("file")
}

// kindGroup tells which conditions exclude each other: about files, hosts or programs.
func kindGroup(kind string) string {
	switch kind {
	case "dir", "segment", "glob", "ext", "exts", "name", "libbelow":
		return "file"
	case "host", "hosts", "suffix":
		return "host"
	case "program", "flag":
		return "program"
	case "action", "actions":
		return "action"
	default:
		return ""
	}
}

func subject(kind string) string {
	switch kind {
	case "tools", "table", "prefix":
		return "tool"
	case "segment", "glob", "libbelow":
		return "dir"
	case "exts", "name":
		return "ext"
	case "hosts", "suffix":
		return "host"
	case "classes":
		return "class"
	case "libarg":
		return "mode"
	case "actions":
		return "action"
	default:
		return kind
	}
}

func (w *sampler) rule(p *policy, n int) rule {
	sets := []string{"allow", "allow", "allow", "deny", "deny", "ask", "hold", "limit", "require", "label"}
	r := rule{set: sets[w.IntN(len(sets))], reason: fmt.Sprint("rule ", n)}
	group, used := "", map[string]bool{}
	for want := 2 + w.IntN(3); len(r.all) < want; {
		c := w.condition(p)
		g := kindGroup(c.kind)
		if used[subject(c.kind)] || g != "" && group != "" && g != group {
			continue
		}
		used[subject(c.kind)] = true
		if g != "" {
			group = g
		}
		if w.IntN(4) == 0 {
			c.helper = fmt.Sprintf("helper_%d_%d", n, len(r.all))
		}
		r.all = append(r.all, c)
	}
	return r
}

func (w *sampler) policy() *policy {
	p := &policy{data: map[string][]string{}}
	for n := range 4 + w.IntN(6) {
		p.rules = append(p.rules, w.rule(p, n))
	}
	return p
}

// source returns the text of a policy. A name for helpers makes another text of
// the same meaning.
func (p *policy) source(helpers string) string {
	var b, below strings.Builder
	b.WriteString("package remit\n\nimport data.remit.lib\n\n")
	for _, r := range p.rules {
		element := fmt.Sprintf("%q", r.reason)
		switch r.set {
		case "limit":
			element = fmt.Sprintf("{\"budget\": %q, \"max\": 10}", r.reason)
		case "require":
			element = `"verify"`
		}
		fmt.Fprintf(&b, "%s contains %s if {\n", r.set, element)
		for _, c := range r.all {
			text := c.text()
			if c.helper != "" {
				fmt.Fprintf(&below, "%s%s if %s\n\n", c.helper, helpers, text)
				text = c.helper + helpers
			}
			if c.not {
				text = "not " + text
			}
			b.WriteString("\t" + text + "\n")
		}
		b.WriteString("}\n\n")
	}
	return b.String() + below.String() + "uses_lib if lib.role(\"nobody\")\n"
}

func (p *policy) copy() *policy {
	out := &policy{data: map[string][]string{}}
	for k, v := range p.data {
		out.data[k] = slices.Clone(v)
	}
	for _, r := range p.rules {
		r.all = slices.Clone(r.all)
		for i := range r.all {
			r.all[i].words = slices.Clone(r.all[i].words)
		}
		out.rules = append(out.rules, r)
	}
	return out
}

// plant makes one small change. It returns the rule that it changed, and what
// it did.
func (w *sampler) plant(p *policy) (*policy, int, string) {
	out := p.copy()
	i := w.IntN(len(out.rules))
	r := &out.rules[i]
	j := w.IntN(len(r.all))
	c := &r.all[j]
	switch w.IntN(9) {
	case 0:
		r.all = slices.Delete(r.all, j, j+1)
		return out, i, "condition left out"
	case 1:
		c.not = !c.not
		return out, i, "condition turned around"
	case 2:
		old := r.set
		for r.set == old {
			r.set = []string{"allow", "deny", "ask", "hold"}[w.IntN(4)]
		}
		return out, i, "another set"
	case 3:
		out.rules = slices.Delete(out.rules, i, i+1)
		return out, i, "rule left out"
	case 4:
		extra := w.condition(out)
		for subject(extra.kind) == subject(c.kind) || kindGroup(extra.kind) != "" {
			extra = w.condition(out)
		}
		r.all = append(r.all, extra)
		return out, i, "condition added"
	}
	switch {
	case c.kind == "table":
		rows := out.data[c.words[0]]
		out.data[c.words[0]] = rows[1:]
		return out, i, "row left out"
	case c.n > 0:
		c.n += []int{-1, 1, 2, 10}[w.IntN(4)]
		c.n = max(c.n, 0)
		return out, i, "another number"
	case c.kind == "glob":
		c.n++
		return out, i, "another pattern"
	case len(c.words) > 1:
		c.words = c.words[1:]
		return out, i, "element left out"
	default:
		other := w.condition(out)
		for other.kind != c.kind || len(other.words) != len(c.words) || slices.Equal(other.words, c.words) && other.n == c.n {
			other = w.condition(out)
			if other.kind == c.kind && c.words == nil {
				break
			}
		}
		other.not, other.helper = c.not, c.helper
		*c = other
		return out, i, "another word"
	}
}
