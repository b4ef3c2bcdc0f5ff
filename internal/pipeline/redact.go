package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// hiddenText replaces redacted text.
const hiddenText = callstate.HiddenText

// redaction holds the JSON pointers that the policy redacts in one call. They
// point into the document {"args": input, "output": output}. All records and
// output of the call pass through it. It only grows. It always removes the
// values of secrets that the runtime opened, even if the policy redacts
// nothing.
type redaction struct {
	input []byte               // canonical, as the caller gave it
	known callstate.SecretSets // values of opened secrets

	mu          sync.Mutex // never held across a wait
	all         bool       // the policy could not say what to redact, so the whole input is hidden
	pointers    []string
	sensitive   []string                   // arguments that the tool declares as sensitive: they are recorded, and no message repeats them
	filterHides []func(text string) string // functions of filters that every text about the call passes through
}

// add redacts more pointers, and ignores those that it already has.
func (v *redaction) add(pointers []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range pointers {
		if !slices.Contains(v.pointers, p) {
			v.pointers = append(v.pointers, p)
		}
	}
}

// addAll redacts the whole input and every output.
func (v *redaction) addAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = true
}

// hide adds a function of a filter for texts about the call.
func (v *redaction) hide(f func(text string) string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.filterHides = append(v.filterHides, f)
}

// like copies the filter functions of another redaction: the one of the input
// that a filter replaced.
func (v *redaction) like(other *redaction) { v.filterHides = other.saying() }

func (v *redaction) saying() []func(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.filterHides)
}

// idle reports whether the redaction removes nothing from any text.
func (v *redaction) idle() bool {
	return len(v.spoken()) == 0 && v.known.None() && len(v.saying()) == 0
}

func (v *redaction) of(place string) (paths [][]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all {
		return [][]string{{}}
	}
	for _, p := range v.pointers {
		steps := strings.Split(strings.TrimPrefix(p, "/"), "/")
		for i := range steps {
			steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i])
		}
		if steps[0] == place {
			paths = append(paths, steps[1:])
		}
	}
	return paths
}

// shownInput returns the redacted input, as it is recorded and shown.
func (v *redaction) shownInput() []byte {
	shown, _ := redacted(v.input, v.of("args"))
	return shown
}

// hides returns the pointers that remove something from this call: those into
// its arguments that exist, and all into an output that is not known yet.
func (v *redaction) hides() []string {
	v.mu.Lock()
	all, pointers := v.all, slices.Clone(v.pointers)
	v.mu.Unlock()
	if all {
		return []string{"/args", "/output"}
	}
	return slices.DeleteFunc(pointers, func(p string) bool {
		only := &redaction{input: v.input, known: v.known, pointers: []string{p}}
		return len(only.of("output")) == 0 && !only.hidesInput()
	})
}

func (v *redaction) hidesInput() bool {
	_, gone := redacted(v.input, v.of("args"))
	return len(gone) > 0
}

// secrets returns the texts to remove that have at least `least` bytes. A
// shorter one occurs in any text by chance. Longer texts come first, because
// one can contain another.
func (v *redaction) secrets(least int) []string { return v.textsAt(v.of("args"), least) }

// spoken returns the texts that no message about the call may repeat.
func (v *redaction) spoken() []string {
	paths := v.of("args")
	for _, name := range v.sensitive {
		paths = append(paths, []string{name})
	}
	return v.textsAt(paths, 2)
}

func (v *redaction) textsAt(paths [][]string, least int) []string {
	_, gone := redacted(v.input, paths)
	var texts []string
	for _, value := range gone {
		texts = append(texts, leaves(value)...)
	}
	texts = slices.DeleteFunc(texts, func(s string) bool { return len(s) < least })
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(texts)
}

// result redacts a canonical result. It removes the members that pointers name,
// and every other occurrence of their texts or of hidden arguments.
func (v *redaction) result(canonical []byte) ([]byte, error) {
	paths := v.of("output")
	secrets := v.secrets(4)
	if len(paths) == 0 && len(secrets) == 0 && (v.known.None() || v.known.Scrub(string(canonical)) == string(canonical) && !v.inParts(canonical)) {
		return canonical, nil
	}
	var r tool.Result
	if err := canon.Decode(canonical, &r); err != nil {
		return nil, err
	}
	hidden, gone := redacted(r.Output(), paths)
	for _, value := range gone {
		for _, text := range leaves(value) {
			if len(text) >= 4 {
				secrets = append(secrets, text)
			}
		}
	}
	if r.JSON != nil {
		r.JSON = hidden
	}
	if slices.ContainsFunc(paths, func(p []string) bool { return len(p) == 0 }) {
		r = tool.Result{Text: hiddenText, Sources: r.Sources}
	}
	return v.scrubResult(r, secrets)
}

// inParts reports whether the bytes of a part, which are base64 in the
// canonical form, contain a secret that shows only after decoding.
func (v *redaction) inParts(canonical []byte) bool {
	var r tool.Result
	if err := canon.Decode(canonical, &r); err != nil {
		return true // redacting then fails where an error can be returned
	}
	return slices.ContainsFunc(r.Parts, func(p tool.Part) bool { return v.known.Scrub(string(p.Data)) != string(p.Data) })
}

// scrubResult removes texts from every text of a result. A part is bytes of
// some medium: a part that contains such a text is omitted.
func (v *redaction) scrubResult(r tool.Result, secrets []string) ([]byte, error) {
	if r.JSON != nil {
		doc, err := decoded(r.JSON)
		if err != nil {
			return nil, err
		}
		if r.JSON, err = canon.Marshal(v.scrubbed(doc, secrets)); err != nil {
			return nil, err
		}
	}
	r.Text = v.scrub(r.Text, secrets)
	if v.scrub(r.MediaType, secrets) != r.MediaType {
		r.MediaType = ""
	}
	if meta := make(map[string]string, len(r.Meta)); r.Meta != nil {
		for name, text := range r.Meta {
			meta[v.scrub(name, secrets)] = v.scrub(text, secrets)
		}
		r.Meta = meta
	}
	for i, source := range r.Sources {
		r.Sources[i].Title, r.Sources[i].URL = v.scrub(source.Title, secrets), v.scrub(source.URL, secrets)
	}
	for i, part := range r.Parts {
		if string(part.Data) != v.scrub(string(part.Data), secrets) || part.MediaType != v.scrub(part.MediaType, secrets) {
			r.Parts[i] = tool.Part{MediaType: "text/plain", Data: []byte(hiddenText)}
		}
	}
	out, err := canon.Marshal(r)
	if err == nil && v.known.Scrub(string(out)) != string(out) { // the secret is in an unexpected place
		return canon.Marshal(tool.Result{Text: hiddenText})
	}
	return out, err
}

// text removes hidden arguments from a text, plain and quoted, and applies the
// functions of filters.
func (v *redaction) text(s string) string {
	s = v.scrub(s, v.spoken())
	for _, hide := range v.saying() {
		s = applyHide(hide, s)
	}
	return s
}

func applyHide(hide func(string) string, text string) (shown string) {
	defer func() {
		if recover() != nil {
			shown = hiddenText
		}
	}()
	return hide(text)
}

func (v *redaction) texts(list []string) []string {
	out := slices.Clone(list)
	for i := range out {
		out[i] = v.text(out[i])
	}
	return out
}

// decision returns a decision as it is recorded: a reason can repeat an
// argument.
func (v *redaction) decision(d perm.Decision) perm.DecisionRecord { return v.record(d.Record()) }

func (v *redaction) record(r perm.DecisionRecord) perm.DecisionRecord {
	if v.idle() {
		return r
	}
	for i := range r.Reasons {
		r.Reasons[i].Text = v.text(r.Reasons[i].Text)
	}
	r.Hints = v.texts(r.Hints)
	if r.Remember != nil {
		r.Remember = &perm.Remember{Scope: r.Remember.Scope, Keys: v.texts(r.Remember.Keys)}
	}
	return r
}

// outcome returns an outcome as it is shown.
func (v *redaction) outcome(o tool.Outcome) tool.Outcome {
	o.Input = v.shownInput()
	if v.idle() {
		o.Redacted = len(v.hides()) > 0
		return o
	}
	o.Redacted = true
	o.Text = v.text(o.Text)
	if o.Error != nil {
		o.Error = &tool.Problem{What: v.text(o.Error.What), Why: v.text(o.Error.Why), Fix: v.text(o.Error.Fix)}
	}
	if o.Verdict != nil {
		o.Verdict = &tool.Verdict{Presence: o.Verdict.Presence, Findings: v.texts(o.Verdict.Findings)}
	}
	o.RevertResults = slices.Clone(o.RevertResults)
	for i := range o.RevertResults {
		o.RevertResults[i].Why = v.text(o.RevertResults[i].Why)
	}
	return o
}

// kept says why a call whose arguments are redacted cannot run, or returns "".
// A revert or a later resume would work with an input that is not the original.
func (v *redaction) kept(t tool.Tool, waits, held bool) string {
	hides := v.hides()
	if spec(t).Revert != nil && len(hides) > 0 {
		return fmt.Sprintf("the policy redacts %s, and the tool's own Revert would need it to take the call back", strings.Join(hides, ", "))
	}
	if waits && v.hidesInput() {
		return fmt.Sprintf("the policy redacts %s, so the call cannot be kept until a person approves it", strings.Join(hides, ", "))
	}
	if held && v.hidesInput() {
		return fmt.Sprintf("the policy redacts %s, so the call cannot be kept until its transaction commits", strings.Join(hides, ", "))
	}
	return ""
}

// unkept returns the denial for the reason that kept returns.
func (l *Pipeline) unkept(a admitted, access perm.ResourceAccess, d perm.Decision, waits, held bool) error {
	if why := a.redaction.kept(a.tool, waits, held); why != "" {
		return &callstate.DeniedError{Access: access, Stage: "policy", Decision: d, Why: why}
	}
	return nil
}

// redactRemaining asks the policy what to redact in a call that was denied before
// all its accesses were decided, because its arguments are recorded too. If the
// engine fails, everything is redacted.
func (l *Pipeline) redactRemaining(ctx context.Context, a admitted, rest []perm.ResourceAccess, dynamic bool) {
	if e, ok := l.engine().(interface{ Redacts() bool }); ok && !e.Redacts() {
		return
	}
	for _, access := range rest {
		req, err := l.request(a, access, dynamic)
		if err != nil {
			a.redaction.addAll()
			return
		}
		d, err := l.ask(ctx, a.tool, &req)
		if err != nil {
			a.redaction.addAll()
			return
		}
		a.redaction.add(d.Details().Redact)
	}
}

// redacted replaces the values at paths of a JSON text, and returns the values
// that it replaced. It hides a text that cannot be parsed as a whole.
func redacted(text []byte, paths [][]string) (shown []byte, gone []any) {
	if len(paths) == 0 {
		return text, nil
	}
	doc, err := decoded(text)
	if err != nil {
		return strconv.AppendQuote(nil, hiddenText), nil
	}
	for _, path := range paths {
		var value any
		var there bool
		if doc, value, there = without(doc, path); there {
			gone = append(gone, value)
		}
	}
	if len(gone) == 0 {
		return text, nil
	}
	if shown, err = canon.Marshal(doc); err != nil {
		return strconv.AppendQuote(nil, hiddenText), gone
	}
	return shown, gone
}

func decoded(text []byte) (doc any, err error) {
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	err = dec.Decode(&doc)
	return doc, err
}

// without returns a document without the value at a path, and that value.
func without(doc any, path []string) (left, value any, there bool) {
	if len(path) == 0 {
		return hiddenText, doc, true
	}
	switch in := doc.(type) {
	case map[string]any:
		inside, ok := in[path[0]]
		if !ok {
			return doc, nil, false
		}
		in[path[0]], value, there = without(inside, path[1:])
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(in) || path[0] != strconv.Itoa(i) {
			return doc, nil, false
		}
		in[i], value, there = without(in[i], path[1:])
	}
	return doc, value, there
}

// leaves returns the texts and numbers of a value. Booleans reveal nothing by
// themselves.
func leaves(value any) (texts []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case json.Number:
		return []string{v.String()}
	case map[string]any:
		for _, inside := range v {
			texts = append(texts, leaves(inside)...)
		}
	case []any:
		for _, inside := range v {
			texts = append(texts, leaves(inside)...)
		}
	}
	return texts
}

// scrubbed removes secrets from the texts of a document. Opened secrets are
// also removed from names and numbers.
func (v *redaction) scrubbed(doc any, secrets []string) any {
	switch d := doc.(type) {
	case string:
		return v.scrub(d, secrets)
	case json.Number:
		if s := d.String(); v.known.Scrub(s) != s {
			return hiddenText
		}
	case map[string]any:
		out := make(map[string]any, len(d))
		for name, inside := range d {
			out[v.scrub(name, secrets)] = v.scrubbed(inside, secrets)
		}
		return out
	case []any:
		for i, inside := range d {
			d[i] = v.scrubbed(inside, secrets)
		}
	}
	return doc
}

// hold redacts the parts of the input that contain the value of an opened
// secret, so that a caller who obtained one does not get it recorded.
func (v *redaction) hold() {
	if v.known.None() || v.known.Scrub(string(v.input)) == string(v.input) {
		return
	}
	doc, err := decoded(v.input)
	if err != nil {
		v.addAll()
		return
	}
	found := v.holding(doc, "/args")
	if len(found) == 0 { // in a name, or across several values
		found = []string{"/args"}
	}
	v.add(found)
}

// holding returns the pointers to texts and numbers that contain such a value.
func (v *redaction) holding(doc any, at string) (found []string) {
	switch d := doc.(type) {
	case string:
		if v.known.Scrub(d) != d {
			return []string{at}
		}
	case json.Number:
		return v.holding(d.String(), at)
	case map[string]any:
		for name, inside := range d {
			if v.known.Scrub(name) != name {
				return []string{at}
			}
			found = append(found, v.holding(inside, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name))...)
		}
	case []any:
		for i, inside := range d {
			found = append(found, v.holding(inside, at+"/"+strconv.Itoa(i))...)
		}
	}
	slices.Sort(found)
	return found
}

// alone replaces a short text in another one, except inside a word or a number.
func alone(text, short, with string) string {
	var out strings.Builder
	for rest, before := text, ' '; ; {
		i := strings.Index(rest, short)
		if i < 0 {
			out.WriteString(rest)
			return out.String()
		}
		if r, n := utf8.DecodeLastRuneInString(rest[:i]); n > 0 {
			before = r
		}
		first, _ := utf8.DecodeRuneInString(short)
		last, _ := utf8.DecodeLastRuneInString(short)
		after, _ := utf8.DecodeRuneInString(rest[i+len(short):])
		out.WriteString(rest[:i])
		if alike(before, first) || alike(last, after) {
			out.WriteString(short)
		} else {
			out.WriteString(with)
		}
		before, rest = last, rest[i+len(short):]
	}
}

func alike(a, b rune) bool {
	return unicode.IsLetter(a) && unicode.IsLetter(b) || unicode.IsDigit(a) && unicode.IsDigit(b)
}

// scrub removes texts, and the values of opened secrets, from a text.
func (v *redaction) scrub(text string, secrets []string) string {
	return v.known.Scrub(scrub(text, secrets))
}

// scrub removes secrets from a text, also in quoted form. A short one inside
// another word is there by chance and stays: otherwise the text would be
// unreadable.
func scrub(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) < 4 {
			text = alone(text, s, hiddenText)
			continue
		}
		text = strings.ReplaceAll(text, s, hiddenText)
		if quoted := strconv.Quote(s); quoted[1:len(quoted)-1] != s {
			text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], hiddenText)
		}
	}
	return text
}
