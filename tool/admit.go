package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// admitted is a call whose tool exists and whose input is valid. permit accepts
// nothing else.
type admitted struct {
	id     string
	tool   Tool
	seq    int    // number in the transaction; 0 until permit
	input  []byte // canonical
	digest string // digest of the input
	exact  []perm.ResourceAccess
	class  effect.Class // effect class of this call
	bound  perm.Set     // upper bound of the accesses that the call may request while it runs
	veil   *redaction   // the redaction of this call
	batch  perm.BatchFacts
	resume *revert.Call // the pending call that this call resumes

	pass    *filterRun    // the run through the filters; nil: the pipeline has none
	refusal *batchRefusal // the refusal of the batch that contains the call

	progress func(Progress) // listener of this call alone; nil: none
	begun    startFunc
	told     func(ctx context.Context, ask ctxperm.ApprovalRequest) // called for each approval request of the running call; nil: none
	before   []record.Approved                                      // approvals of earlier runs of the call
	during   bool                                                   // the decision is about accesses that the call requests while it runs
	script   *perm.ScriptFacts                                      // what the call's script runs; nil: no script
	program  []perm.ChangeFacts                                     // changes that a finished program proposes; nil: the decision is about the call itself
	git      map[string]*perm.GitFacts                              // Git facts of program, by resource
	preview  string                                                 // the proposed changes as text for the approver

	released *record.Held // the call was held, and its transaction commits now
	doubt    bool         // an earlier release has an unknown outcome

	sums    map[string]json.Number // amounts that the call adds to the counters of its session
	counted perm.SessionFacts      // facts of the session before this call
	charged []perm.Limit           // shared limits that were checked when the call began
}

// admit is step 1: it finds the tool, decodes and validates the input once, and
// computes the exact accesses. The policy never sees a call that admit refuses.
// The record of the refusal has no barrier and no sequence number.
func (l *Pipeline) admit(ctx context.Context, req Request) (admitted, *Outcome) {
	t, err := l.tools().Find(req.Tool)
	if err != nil {
		if t.IsZero() {
			_, err = l.tools().seenBy(l.p.Client).Find(req.Tool) // the error must not name hidden tools
		}
		return admitted{}, l.invalid(ctx, req, Tool{}, err)
	}
	if why := t.NotConfiguredReason(); why != "" {
		return admitted{}, l.invalid(ctx, req, t, unconfigured(t, why))
	}
	a := admitted{id: req.ID, tool: t, batch: req.Batch, resume: req.resumed, refusal: req.refusal, progress: req.Progress, begun: req.OnStart, told: req.Asked}
	if a, err = l.accept(a, req.Input); err != nil {
		return admitted{}, l.invalid(ctx, req, t, err)
	}
	var before []record.Replacement
	if req.resumed != nil && req.resumed.Asked != nil {
		before = req.resumed.Asked.Replaced
	}
	a.pass = l.newPass(req.Turn, before)
	return a, nil
}

// accept sets the decoded and validated input of a call, and all that the input
// determines.
func (l *Pipeline) accept(a admitted, input any) (admitted, error) {
	t := a.tool
	value, err := t.t.read(input, l.p.Limits.document())
	if err != nil {
		return a, err
	}
	a.input = value.Canonical()
	a.veil = &redaction{input: a.input, known: l.known, unsaid: t.t.spec.Hints.Sensitive}
	a.veil.hold()
	a.digest = string(canon.Sum("remit/input/v1", a.input))
	if a.exact, a.bound, err = t.t.accesses(value); err != nil {
		return a, err
	}
	if a.sums, err = t.t.sums(value); err != nil {
		return a, err
	}
	a.class, a.script = t.classOf(a.input), t.scriptOf(a.input)
	return a, nil
}

// scriptOf returns what the script of one call runs. It returns nil if the
// tool's function panics.
func (t Tool) scriptOf(input []byte) (script *perm.ScriptFacts) {
	defer func() {
		if recover() != nil {
			script = &perm.ScriptFacts{Commands: []perm.CommandFacts{}, Redirects: []perm.RedirectFacts{}, Dynamic: true, Error: "reading it panicked"}
		}
	}()
	if t.t.spec.ParseScript == nil {
		return nil
	}
	return t.t.spec.ParseScript(slices.Clone(input))
}

// classOf returns the effect class of one call. If the tool's function panics
// or returns no class, it returns the tool's class.
func (t Tool) classOf(input []byte) (class effect.Class) {
	defer func() {
		if recover() != nil {
			class = t.Class()
		}
	}()
	f := t.t.spec.ClassOf
	if f == nil {
		return t.Class()
	}
	switch class = f(slices.Clone(input)); {
	case !class.Valid():
		return t.Class()
	case class == effect.Pure && t.t.spec.holds != "":
		return effect.Reversible // the state of the tool is a change
	default:
		return class
	}
}

// read decodes an input, fills in the defaults of omitted arguments, and
// validates it.
func (t *tool) read(input any, limits canon.Limits) (canon.Value, error) {
	value, err := decodeInput(input, limits)
	if err == nil {
		value, err = t.input.Complete(value)
	}
	if err == nil {
		err = t.input.Validate(value)
	}
	return value, err
}

func decodeInput(input any, limits canon.Limits) (canon.Value, error) {
	var v canon.Value
	var err error
	switch in := input.(type) {
	case nil:
		v, err = canon.Parse([]byte("{}"), limits)
	case json.RawMessage:
		v, err = canon.Parse(in, limits)
	case []byte:
		v, err = canon.Parse(in, limits)
	default:
		if v, err = canon.From(in); err != nil {
			break
		}
		if text := v.Canonical(); len(text) > limits.Bytes || canon.Deeper(text, limits.Depth) {
			v, err = canon.Parse(text, limits) // Parse reports the error
		}
	}
	if err != nil {
		return v, fmt.Errorf("the input: %w", err)
	}
	return v, nil
}

// ClassFor returns the effect class of a call with this input: Class, or a
// milder one.
func (t Tool) ClassFor(input json.RawMessage) (effect.Class, error) {
	if t.t == nil {
		return effect.Pivot, fmt.Errorf("a tool that was never made: %w", ErrInvalid)
	}
	value, err := t.t.read(input, canon.Limits{Bytes: len(input), Depth: mostDepth})
	if err != nil {
		return t.Class(), fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return t.classOf(value.Canonical()), nil
}

// Accesses returns the exact accesses that a call with this input requests
// before it runs. If there are none, the runtime authorizes the call of the
// tool itself. Accesses that the call requests while it runs are not included.
func (t Tool) Accesses(input json.RawMessage) ([]perm.ResourceAccess, error) {
	if t.t == nil {
		return nil, fmt.Errorf("a tool that was never made touches nothing: %w", ErrInvalid)
	}
	value, err := t.t.read(input, canon.Limits{Bytes: len(input), Depth: mostDepth}) // the caller already holds the input in memory
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	exact, _, err := t.t.accesses(value)
	return exact, err
}

// NormalizeInput returns an input as the tool's code receives it: validated,
// canonical, and with the defaults of omitted arguments.
func (t Tool) NormalizeInput(input json.RawMessage) (json.RawMessage, error) {
	if t.t == nil {
		return nil, fmt.Errorf("a tool that was never made takes no input: %w", ErrInvalid)
	}
	value, err := t.t.read(input, canon.Limits{Bytes: len(input), Depth: mostDepth})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return value.Canonical(), nil
}

// accesses computes the exact accesses of one call: each need whose parameters
// the input fills in, and the result of the tool's AccessFor.
func (t *tool) accesses(in canon.Value) (exact []perm.ResourceAccess, bound perm.Set, err error) {
	argument := func(name string) (string, bool) {
		v, ok := in.Get(name)
		if !ok || v.Kind() != canon.String {
			return "", false
		}
		return v.Text(), true
	}
	var limits []perm.ResourceAccess
	for _, n := range t.needs {
		if !filled(n.params, argument) {
			continue // an omitted optional argument names no resource
		}
		p, err := n.pattern.BindPattern(argument)
		if err != nil {
			return nil, bound, n.badPath(argument, err)
		}
		a := n.access
		a.Resource = p.String()
		limits = append(limits, a)
		if r, ok := p.Exact(); ok && t.spec.parts == nil {
			a.Resource = r.String()
			exact = append(exact, a)
		}
	}
	if t.spec.AccessFor != nil {
		own, err := t.ownAccesses(in)
		if err != nil {
			return nil, bound, err
		}
		exact, limits = merged(exact, own), append(limits, own...)
	}
	if t.spec.Bound != nil {
		own, err := computed(in, t.spec.Bound)
		if err != nil {
			return nil, bound, err
		}
		limits = append(slices.DeleteFunc(own, func(a perm.ResourceAccess) bool { return !t.bound.Allows(a) }), exact...)
	}
	if t.spec.parts != nil { // the arguments are not those of the parts
		return exact, t.bound, nil
	}
	bound, err = perm.NewSet(limits...)
	return exact, bound, err
}

func (t *tool) ownAccesses(in canon.Value) ([]perm.ResourceAccess, error) {
	own, err := computed(in, t.spec.AccessFor)
	for i, a := range own {
		if !t.bound.Allows(a) {
			return nil, fmt.Errorf("access %d, %s, lies outside what the tool declares to need", i+1, a.Action)
		}
	}
	return own, err
}

// computed returns the accesses that a function of the tool computes for one
// call, in canonical form.
func computed(in canon.Value, f func(json.RawMessage) ([]perm.ResourceAccess, error)) (own []perm.ResourceAccess, err error) {
	defer func() {
		if p := recover(); p != nil {
			own, err = nil, fmt.Errorf("computing the accesses panicked (%T)", p)
		}
	}()
	if own, err = f(in.Canonical()); err != nil {
		return nil, err
	}
	own = slices.Clone(own) // the tool can keep its slice
	for i, a := range own {
		r, err := perm.ParseResource(a.Resource)
		if err != nil {
			return nil, fmt.Errorf("access %d: %w", i+1, err)
		}
		own[i].Resource = r.String()
	}
	return own, nil
}

func filled(params []string, argument func(string) (string, bool)) bool {
	for _, p := range params {
		if _, ok := argument(p); !ok {
			return false
		}
	}
	return true
}

// badPath returns the argument that a need cannot be filled in with: the one
// that is wrong even if all others are harmless.
func (n need) badPath(argument func(string) (string, bool), err error) error {
	name := strings.Join(n.params, ", ")
	for _, p := range n.params {
		_, alone := n.pattern.BindPattern(func(other string) (string, bool) {
			if other == p {
				return argument(p)
			}
			return "x", true
		})
		if alone != nil {
			name, err = p, alone
			break
		}
	}
	if errors.Is(err, perm.ErrOutside) {
		return fmt.Errorf("argument %q: the path leaves its root; valid is a relative path inside it, without \"..\"", name)
	}
	if rest, ok := strings.CutPrefix(err.Error(), "argument "+name); ok {
		return fmt.Errorf("argument %q%s", name, rest)
	}
	return fmt.Errorf("argument %q: %w", name, err)
}

func (t *tool) parseNeeds() error {
	var all []perm.ResourceAccess
	for i, a := range t.spec.Needs {
		if !a.Action.Valid() {
			return fmt.Errorf("need %d: action %q: %w", i+1, a.Action, new(perm.Action).UnmarshalText([]byte(a.Action)))
		}
		p, err := perm.ParsePattern(a.Resource)
		if err != nil {
			return fmt.Errorf("need %d: %w", i+1, err)
		}
		n := need{access: a, pattern: p, params: p.Params()}
		if err := t.checkParams(n.params); err != nil {
			return fmt.Errorf("need %d: %w", i+1, err)
		}
		t.needs, all = append(t.needs, n), append(all, a)
	}
	var err error
	t.bound, err = perm.NewSet(all...)
	return err
}

// checkParams refuses a need that no argument can fill in. Otherwise the
// runtime would authorize less than the call does.
func (t *tool) checkParams(params []string) error {
	doc, err := canon.Parse(t.input.Canonical(), canon.DefaultLimits())
	if err != nil {
		return err
	}
	properties, _ := doc.Get("properties")
	for _, p := range params {
		argument, ok := properties.Get(p)
		if !ok {
			return fmt.Errorf("parameter {%s} is no argument of the tool", p)
		}
		// Only a string can be filled in. The runtime would not authorize the
		// access that another type names.
		if kind, _ := argument.Get("type"); kind.Text() != "string" {
			return fmt.Errorf("parameter {%s} names an argument whose schema does not say \"type\": \"string\"", p)
		}
	}
	return nil
}

// invalid ends a call at admit. The record holds no input, because nothing has
// validated it.
func (l *Pipeline) invalid(ctx context.Context, req Request, t Tool, why error) *Outcome {
	reason := l.known.Scrub(why.Error())
	out := Outcome{
		Call: req.ID, Txn: l.p.Recorder.Txn(), Tool: req.Tool, Status: StatusInvalid, EffectClass: "",
		Changes: []Change{}, Error: &Problem{What: "the call is not valid", Why: reason, Fix: "correct the call and send it again"},
	}
	if !t.IsZero() {
		out.EffectClass = t.Class()
	}
	if req.resumed != nil { // the approval request remains, for a program that can resume the call
		out.Error.What = "the call that waits cannot go on here"
		out.Error.Fix = "resume it in a program that has the tool as it was asked about, or take its transaction back"
		return out.withText()
	}
	rec := revert.CallRecord{Call: req.ID, Body: &record.Invalid{Tool: toolRef(t, l.known.Scrub(req.Tool)), Why: reason}}
	// No barrier: nothing happened, so a lost record loses nothing.
	if err := l.p.Recorder.Write(ctx, revert.Write{Records: []revert.CallRecord{rec}}); err != nil {
		out.Error.Why += " (and the journal could not note it: " + err.Error() + ")"
	}
	return out.withText()
}

func toolRef(t Tool, name string) record.ToolRef {
	if t.IsZero() {
		return record.ToolRef{Name: name}
	}
	s := t.t.spec
	return record.ToolRef{Name: s.Name, Version: s.Version, Digest: t.t.digest, Settings: t.SettingsDigest(), UndoVersion: s.UndoVersion}
}
