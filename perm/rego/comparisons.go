package rego

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// impossible refuses comparisons that can never hold, or always hold. The cause
// is the form of the texts of a field, or the types that OPA orders.
func (f *fieldCheck) impossible(name string, ops []*ast.Term, loc *ast.Location) {
	switch name {
	case "eq", "equal", "neq":
		f.form(ops[0], ops[1], loc)
		f.form(ops[1], ops[0], loc)
		f.spelling(ops[0], ops[1], loc)
		f.spelling(ops[1], ops[0], loc)
	case "internal.member_2":
		f.form(ops[0], ops[1], loc)
		f.spelling(ops[0], ops[1], loc)
		f.among(ops[1], ops[0], loc)
	case "lt", "lte", "gt", "gte":
		f.form(ops[0], ops[1], loc)
		f.form(ops[1], ops[0], loc)
		f.ordered(ops[0], ops[1], loc)
		f.ordered(ops[1], ops[0], loc)
		f.ranked(ops[0], ops[1], loc)
		f.ranked(ops[1], ops[0], loc)
	case "startswith":
		f.beginning(ops[0], ops[1], loc)
		f.spelling(ops[0], ops[1], loc)
	case "endswith", "contains":
		f.spelling(ops[0], ops[1], loc)
	case "regex.match":
		f.pattern(ops[0], loc)
	}
}

// form checks texts that a field is compared with against the form of its
// texts.
func (f *fieldCheck) form(place, with *ast.Term, loc *ast.Location) {
	s := f.shapeOf(place)
	if s == nil {
		return
	}
	form, known := f.forms[s.path]
	if !known {
		return
	}
	var wrong, right []string
	for _, text := range f.constants(with) {
		if fix := form.fails(text); fix != "" {
			wrong, right = append(wrong, text), append(right, fix)
		}
	}
	if len(wrong) > 0 {
		f.found.add(spot(loc), strings.Join(slices.Compact(right), "; "), "input.%s can never be %s: it %s", s.path, alternatives(wrong), form.why)
	}
}

// among finds elements of a list of the input, as in "a" in input.x.
func (f *fieldCheck) among(list, element *ast.Term, loc *ast.Location) {
	s := f.shapeOf(list)
	if s == nil {
		return
	}
	if slices.Equal(s.types, []string{"string"}) {
		f.found.add(spot(loc), "write contains("+f.spell(list.Value)+", "+f.spell(element.Value)+"), or compare the texts",
			"input.%s is a text, and in looks at the elements of a list: this never holds", s.path)
		return
	}
	if s.items == nil {
		return
	}
	for _, text := range f.constants(element) {
		if len(s.items.enum) > 0 && !slices.Contains(s.items.enum, text) {
			f.found.add(spot(loc), fixName(text, s.items.enum), "%q is never in %s", text, f.spell(list.Value))
		}
	}
	form, known := f.forms[s.items.path]
	if !known {
		return
	}
	for _, text := range f.constants(element) {
		if fix := form.fails(text); fix != "" {
			f.found.add(spot(loc), fix, "%q is never in input.%s: an element %s", text, s.path, form.why)
		}
	}
}

func (f *fieldCheck) beginning(place, with *ast.Term, loc *ast.Location) {
	s := f.shapeOf(place)
	if s == nil || f.forms[s.path].parts == nil {
		return
	}
	for _, text := range f.constants(with) {
		if fix := f.forms[s.path].parts(text); fix != "" {
			f.found.add(spot(loc), fix, "input.%s can never begin with %q: it %s", s.path, text, f.forms[s.path].why)
		}
	}
}

// ordered refuses < and > between values of two types. OPA orders all numbers
// before all texts, and these before all lists and objects, regardless of
// value.
func (f *fieldCheck) ordered(place, with *ast.Term, loc *ast.Location) {
	s := f.shapeOf(place)
	if s == nil || len(s.types) != 1 {
		return
	}
	var kind string
	switch v := f.follow(with).Value.(type) {
	case ast.Number:
		kind = "number"
		if s.path == "session.client.confidence" && strings.Contains(string(v), ".") {
			f.found.add(spot(loc), "write thousandths, such as 900 for 0.9", "input.%s is a whole number of thousandths, and is compared with %s", s.path, v)
			return
		}
	case ast.String:
		kind = "string"
	default:
		return
	}
	is := strings.Replace(s.types[0], "integer", "number", 1)
	if is == kind {
		return
	}
	fix := "compare a number with a number, without quotes, and a text with a text"
	if _, counts := s.fields["run"]; counts {
		fix = "name one of its counts, such as " + f.spell(place.Value) + ".run"
	}
	f.found.add(spot(loc), fix, "%s is of type %s and is compared with a %s: which is less is a matter of their types alone", f.spell(place.Value), is, kind)
}

// spelling refuses a text that a function never returns: lower and upper return
// one case, and time.weekday returns the English name of a day.
func (f *fieldCheck) spelling(result, with *ast.Term, loc *ast.Location) {
	function := f.writer(result)
	if function == "" {
		return
	}
	for _, text := range f.constants(with) {
		right := ""
		switch function {
		case "lower":
			right = strings.ToLower(text)
		case "upper":
			right = strings.ToUpper(text)
		default:
			right = weekday(text)
		}
		if right != text {
			f.found.add(spot(loc), "write "+quote(right), "%s never returns %q", function, text)
		}
	}
}

// weekday returns the name of a day as time.weekday returns it, or a list of
// all names if text is none in any spelling.
func weekday(text string) string {
	var all []string
	for day := time.Sunday; day <= time.Saturday; day++ {
		name := day.String()
		if strings.EqualFold(text, name) || len(text) >= 2 && strings.EqualFold(text, name[:min(len(text), len(name))]) {
			return name
		}
		all = append(all, name)
	}
	return strings.Join(all, `", "`)
}

// ranked refuses < and > between the words of an enum. OPA orders them by their
// letters, and not by their meaning.
func (f *fieldCheck) ranked(place, with *ast.Term, loc *ast.Location) {
	s := f.shapeOf(place)
	if s == nil || len(s.enum) == 0 {
		return
	}
	if text, ok := f.follow(with).Value.(ast.String); ok && slices.Contains(s.enum, string(text)) {
		f.found.add(spot(loc), "write "+f.spell(place.Value)+" in {…} with the words that you mean, out of "+strings.Join(s.enum, ", "),
			"input.%s is a word, and < and > compare its letters: %q has no rank", s.path, string(text))
	}
}

// pattern refuses an invalid regular expression.
func (f *fieldCheck) pattern(op *ast.Term, loc *ast.Location) {
	for _, text := range f.constants(op) {
		if _, err := regexp.Compile(text); err != nil {
			f.found.add(spot(loc), "mend the pattern, or use glob.match, endswith or startswith if it is no regular expression",
				"%q is no regular expression: %s", text, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
}

// lookup refuses keys and members that data never has.
func (n *nameCheck) lookup(at namespace, ref ast.Ref, i int, loc *ast.Location) {
	list, isList := at.data.([]any)
	if !isList || at.rules != nil || len(list) == 0 || n.textual(ref[i]) == "" {
		return
	}
	n.found.add(spot(loc), "go over it: some row in "+ref[:i].String()+"; and compare a field of the row; or make it an object by that key",
		"%s is a list, and %s is a text: nothing is found", ref[:i], n.textual(ref[i]))
}

// textual returns the source of a term that is a text of the input, or "" for
// any other term.
func (n *nameCheck) textual(t *ast.Term) string {
	if s := n.scope.shapeOf(t); s != nil && slices.Equal(s.types, []string{"string"}) {
		return "input." + s.path
	}
	return ""
}

// member refuses "text in data.object" if no value of the object is a text.
func (n *nameCheck) member(e *ast.Expr, loc *ast.Location) {
	if callName(e) != "internal.member_2" || n.textual(e.Operand(0)) == "" {
		return
	}
	ref, ok := n.scope.follow(e.Operand(1)).Value.(ast.Ref)
	if !ok || !ref[0].Equal(ast.DefaultRootDocument) || !ref.IsGround() {
		return
	}
	at := namespace{n.compiler.RuleTree.Child(ref[0].Value), n.data}
	for _, part := range ref[1:] {
		at, _ = at.child(part.Value)
	}
	values, keyed := at.values()
	if at.rules != nil || len(values) == 0 || slices.ContainsFunc(values, func(v any) bool { _, text := v.(string); return text }) {
		return
	}
	fix := "compare a field of each: some row in " + ref.String()
	if keyed {
		fix = "look it up: " + ref.String() + "[" + n.textual(e.Operand(0)) + "]"
	}
	n.found.add(spot(loc), fix, "no value of %s is a text, and in looks at values: %s is never among them", ref, n.textual(e.Operand(0)))
}
