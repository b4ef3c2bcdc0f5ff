package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/origin"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// origins holds where the values of a session and its delegations were seen.
type origins struct {
	family
	declared func(record.ToolRef) *shape // what a tool declares of its values; nil: there is no such tool
	index    *origin.Index
	tools    map[string]record.ToolRef // of the calls in flight
	settings map[string]bool           // digests of those that are noted
	// follows says that other processes can add records of the family: each look
	// reads the journal then. Otherwise the first look reads it, and this process
	// hands over what it writes later.
	follows bool
	begun   bool            // this process hands over what it writes
	whole   bool            // the journal was read
	shared  bool            // other processes can use the journal
	reading chan struct{}   // holds an element while the journal is read
	noted   map[string]bool // calls whose result is noted before its record
}

func newOrigins(j journal.Journal, session string, data json.RawMessage, declared func(record.ToolRef) *shape) *origins {
	o := &origins{shared: isShared(j), family: newFamily(j, session, contentKinds()...), declared: declared, tools: map[string]record.ToolRef{}, settings: map[string]bool{}, noted: map[string]bool{}, reading: make(chan struct{}, 1)}
	o.index = origin.New(o.digest)
	o.config(data)
	return o
}

// digest returns what the journal has of a word: a digest that is specific to
// the family of sessions.
func (o *origins) digest(token string) (d origin.Digest) {
	sum := sha256.Sum256([]byte("remit/heard/v1\x00" + o.first + "\x00" + token))
	copy(d[:], sum[:])
	return d
}

// heard returns the record of a text of a person.
func (o *origins) heard(text string) (sentences [][]byte, accounts []byte) {
	for _, sentence := range origin.Sentences(text) {
		var words []byte
		for _, token := range sentence {
			d := o.digest(token)
			words = append(words, d[:]...)
		}
		sentences = append(sentences, words)
	}
	for _, account := range origin.Joined(text) {
		d := o.digest(account)
		accounts = append(accounts, d[:]...)
	}
	return sentences, accounts
}

func digestsOf(joined []byte) (all []origin.Digest) {
	for d := range slices.Chunk(joined, len(origin.Digest{})) {
		all = append(all, origin.Digest(slices.Concat(d, make([]byte, len(origin.Digest{}))))) // a short last one equals no other
	}
	return all
}

// note processes one record. The lock is held.
func (o *origins) note(call string, body record.Body) {
	switch b := body.(type) {
	case *record.Heard:
		for _, words := range b.Texts {
			o.index.Said(digestsOf(words), nil)
		}
		o.index.Said(nil, digestsOf(b.Accounts))
	case *record.Started:
		o.started(call, b)
	case *record.Done:
		o.done(call, b)
		o.ended(call)
	case *record.Failed:
		o.index.Seen([]byte(b.Why), false) // the model reads it, and a service can have written it
		o.ended(call)
	case *record.Unknown:
		o.index.Seen([]byte(b.Why), false)
		o.ended(call)
	case *record.Verified:
		//mutant:check
		if !b.OK { // its result was not returned
			o.index.Forget(call)
		}
	case *record.Erased:
		o.index.Forget(call)
		o.ended(call)
	}
}

func (o *origins) ended(call string) {
	o.index.Ended(call)
	delete(o.tools, call)
	delete(o.noted, call)
}

// lost processes a record that was erased: what a call wrote is then unknown.
func (o *origins) lost(h record.Header) {
	if h.Kind == record.KindStarted {
		o.index.Blind()
	}
}

func (o *origins) started(call string, b *record.Started) {
	var values []string
	// A redacted input does not say what the call was told.
	known := len(b.Redacted) == 0 || string(canon.Sum("remit/input/v1", b.Input)) == b.InputDigest
	input, err := canon.Parse(b.Input, canon.DefaultLimits())
	if known = known && err == nil; known {
		for leaf := range origin.Leaves(input, nothing) {
			values = append(values, leaf.Text)
		}
	}
	if slices.ContainsFunc(b.Redacted, func(pointer string) bool { return strings.HasPrefix(pointer, "/output") }) {
		o.index.Blind() // what its result says can be anywhere later
	}
	o.tools[call] = b.Tool
	o.index.Begun(call, b.Class != effect.Pure, values, known)
}

func nothing(string) bool { return false }

// done notes the values of a delivered result.
func (o *origins) done(call string, b *record.Done) {
	output := []byte(b.Output)
	if b.Delivered != nil {
		output = b.Delivered
	}
	if b.Undelivered != "" {
		return
	}
	if o.noted[call] {
		return
	}
	declared := o.declared(o.tools[call])
	trusts := declared != nil && declared.trusts
	if !trusts && !hasParts(output) {
		o.index.Seen(output, true)
		return
	}
	var r tool.Result
	if err := canon.Decode(output, &r); err != nil || !trusts {
		o.index.Seen(output, true)
		for _, p := range r.Parts {
			o.index.Seen(p.Data, false)
		}
		return
	}
	var trusted, shown []string
	value := func(text string, is bool) {
		if is {
			trusted = append(trusted, text)
		} else {
			o.index.Seen([]byte(text), false)
		}
	}
	structured, err := canon.Parse(r.JSON, canon.DefaultLimits())
	if err == nil {
		for leaf := range origin.Leaves(structured, nothing) {
			if is := declared.trusted(leaf); is || !showsStructured(r, leaf) {
				value(leaf.Text, is)
			} else {
				shown = append(shown, leaf.Text)
			}
		}
	}
	for _, s := range r.Sources {
		value(s.Title, declared.whole)
		value(s.URL, declared.whole)
	}
	for _, p := range r.Parts {
		value(string(p.Data), declared.whole)
	}
	if declared.whole {
		trusted = append(trusted, r.Text)
	} else {
		shown = append(shown, r.Text)
	}
	for _, text := range shown {
		if !repeats(text, r, structured) {
			o.index.SeenExcept(text, trusted)
		}
	}
	o.index.Returned(call, trusted)
}

// hasParts reports whether an output in canonical form can have parts, which are
// encoded in it.
func hasParts(output []byte) bool { return bytes.Contains(output, []byte(`"parts":`)) }

// repeats reports whether a text is the structured content of the same result
// once more, and nothing else.
func repeats(text string, r tool.Result, structured canon.Value) bool {
	if r.Meta["mcp"] == "result" {
		structured, _ = structured.Get("structuredContent")
	}
	again, err := canon.Parse([]byte(text), canon.DefaultLimits())
	return err == nil && bytes.Equal(again.Canonical(), structured.Canonical())
}

// showsStructured reports whether a leaf is a text of an MCP result, which shows
// its structured content once more.
func showsStructured(r tool.Result, leaf origin.Leaf) bool {
	return r.Meta["mcp"] == "result" && !leaf.Name && strings.HasPrefix(leaf.Pointer, "/content/") && strings.HasSuffix(leaf.Pointer, "/text")
}

// Bounds of what a policy sees of the values of one call.
const (
	mostValues      = 256
	mostIdentifiers = 256 // of all values together
)

// look reads the new records, and returns the facts of the values of a call.
// Those without a trusted origin are first if there are too many, and cut says
// so.
func (o *origins) look(ctx context.Context, t tool.Tool, args json.RawMessage) (facts []perm.ValueFacts, cut bool, err error) {
	if err := o.catchUp(ctx); err != nil {
		return nil, false, fmt.Errorf("where the values of the arguments come from: %w", err)
	}
	input, err := canon.Parse(args, canon.DefaultLimits())
	if err != nil {
		return nil, false, err
	}
	declared := o.declared(record.ToolRef{Name: t.Name(), Digest: t.Digest()})
	if declared == nil {
		declared = &shape{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.configured(t)
	facts = []perm.ValueFacts{}
	var known []perm.ValueFacts
	identifiers := 0
	for leaf := range origin.Leaves(input, func(name string) bool { return declared.names[name] }) {
		one, from := o.value(leaf, declared)
		if identifiers += len(one.Identifiers); identifiers > mostIdentifiers {
			one.Identifiers, cut = nil, true
		}
		if from.Known() {
			known = append(known, one)
		} else if facts = append(facts, one); len(facts) > mostValues {
			break
		}
	}
	if all := len(facts) + len(known); all > mostValues {
		cut = true
	}
	facts = append(facts, known...)
	return facts[:min(len(facts), mostValues)], cut, nil
}

// catchUp reads the records that are not noted. A look beside another one waits
// until all are: with a part of them a value can seem to be trusted.
func (o *origins) catchUp(ctx context.Context) error {
	o.mu.Lock()
	noted := o.whole && !o.follows
	o.mu.Unlock()
	if noted {
		return nil
	}
	select {
	case o.reading <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-o.reading }()
	o.mu.Lock()
	o.begun = true // what is written from here on can be noted twice, which changes nothing
	o.mu.Unlock()
	err := o.read(ctx, o.note, o.lost)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.whole, o.follows = err == nil, o.follows || o.shared && len(o.sessions) > 1
	return err
}

// follow makes each look read what other processes wrote.
func (o *origins) follow() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.follows = true
}

// others makes the next look read what other processes have written.
func (o *origins) others() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.whole = false
}

// written notes records that this process has written.
func (o *origins) written(lines []revert.CallRecord) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.begun || o.follows {
		return
	}
	for _, l := range lines {
		o.note(l.Call, l.Body)
	}
}

// configured notes the settings of a tool.
func (o *origins) configured(t tool.Tool) {
	digest := t.SettingsDigest()
	if digest == "" || o.settings[digest] {
		return
	}
	o.settings[digest] = true
	o.config(t.Settings().OrEmpty())
}

// config notes what the host program configured.
func (o *origins) config(document json.RawMessage) {
	v, err := canon.Parse(document, canon.DefaultLimits())
	if err != nil { // there is none
		return
	}
	for leaf := range origin.Leaves(v, func(string) bool { return true }) {
		o.index.Configured(leaf.Text)
	}
}

// value returns the facts of one value.
func (o *origins) value(leaf origin.Leaf, declared *shape) (perm.ValueFacts, origin.Origins) {
	role, is := declared.roles.Find(leaf.Pointer)
	if !is {
		role = provenance.Authority
	}
	from := o.index.Look(leaf.Text, leaf.Number)
	one := perm.ValueFacts{Pointer: leaf.Pointer, Role: string(role), Origins: from.Names(), Short: origin.Short(leaf.Text)}
	if role == provenance.Authority && !strings.ContainsAny(leaf.Text, " \t\r\n,;<") {
		return one, from // it is one word, which is looked up as a whole
	}
	for _, id := range origin.Identifiers(leaf.Text) {
		if id.Text != leaf.Text || role != provenance.Authority {
			one.Identifiers = append(one.Identifiers, perm.IdentifierFacts{Text: id.Text, Kind: id.Kind, Origins: o.index.Look(id.Text, false).Names()})
		}
	}
	return one, from
}

// longResult is the size from which a result is noted beside its record.
const longResult = 64 << 10

// ahead begins to note a long result without trusted parts, while the
// caller records it.
func (o *origins) ahead(call string, t tool.Tool, output []byte) (wait func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.begun || o.follows || len(output) < longResult || hasParts(output) {
		return func() {}
	}
	if declared := o.declared(record.ToolRef{Name: t.Name(), Digest: t.Digest()}); declared != nil && declared.trusts {
		return func() {}
	}
	o.noted[call] = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.index.Seen(output, true)
	}()
	return func() { <-done }
}

// Note begins to note a result.
func (c *txnFacts) Note(call string, t tool.Tool, output []byte) (wait func()) {
	return c.session.state.origins.ahead(call, t, output)
}

// Values returns where the values of the arguments of a call come from.
func (c *txnFacts) Values(ctx context.Context, t tool.Tool, args json.RawMessage) ([]perm.ValueFacts, bool, error) {
	return c.session.state.origins.look(ctx, t, args)
}
