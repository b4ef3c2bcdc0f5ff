package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// explainFlags is what remit policy explain is told.
type explainFlags struct {
	state.Workspace
	input    string
	policies []string
	json     bool
}

func explainCommand(a *cli.App) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use: "explain CALL | --input FILE|-", Short: "Say why a call is decided as it is, and what would allow it",
		Long: "Asks a policy again about a recorded call, or about an input document as remit policy eval takes it. It says which rules\n" +
			"decided, at which line and by what they saw, which could have allowed it and where they stopped, and the smallest change\n" +
			"of the policy that lets the call through: that change is tried out before it is told.\n\n" +
			"A record does not hold all that a policy saw: counts of the session and the place in a batch are taken as none. What a\n" +
			"program changed is not on it either. If the same policy then decided otherwise, the command cannot tell, and says so.\n" +
			"Exit codes: 0 it is explained; 2 usage, or nothing to explain.",
		Args: func(_ *cobra.Command, ids []string) error {
			if (f.input == "") == (len(ids) == 0) || len(ids) > 1 {
				return cli.UsageProblem("want the id of one call, or --input FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, ids []string) error { return runExplain(cmd.Context(), a, &f, ids) },
	}
	state.AddFlags(cmd, &f.Workspace)
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "", "`FILE` with an input document, or - for standard input")
	flags.StringArrayVar(&f.policies, "policy", nil, "policy `PATH`, a .rego file, a folder of them or builtin:PACK (default: the workspace policy)")
	flags.BoolVar(&f.json, "json", false, "write one JSON object a line, one for each access")
	return cmd
}

// explainOutput is why one access is decided as it is.
type explainOutput struct {
	Call string `json:"call,omitempty"`
	Tool string `json:"tool"`
	rego.Explanation
	Access   perm.AccessFacts     `json:"access"`
	Recorded *perm.DecisionRecord `json:"recorded,omitempty"` // what was decided then
	Change   *rego.PolicyFix      `json:"change"`             // null where none was found
	Approve  string               `json:"approve,omitempty"`  // the command that answers the call
	Notes    []string             `json:"notes"`
	// Unknown says why the decision cannot be made again; Decision is then the recorded one.
	Unknown string `json:"unknown,omitempty"`
}

func runExplain(ctx context.Context, a *cli.App, f *explainFlags, ids []string) error {
	engine, err := policyfile.Load(f.policies, false)
	if err != nil {
		return err
	}
	var asked []recordedAsk
	if f.input != "" {
		r, err := readRequest(a, f.input)
		if err != nil {
			return err
		}
		asked = []recordedAsk{{request: r}}
	} else if asked, err = recordedAsks(ctx, a, f, ids[0]); err != nil {
		return err
	}
	all, err := f.explain(ctx, engine, asked)
	if err != nil {
		return err
	}
	for i, x := range all {
		if f.json {
			a.WriteJSON(x)
			continue
		}
		if i > 0 {
			_, _ = fmt.Fprintln(a.Out)
		}
		writeExplanation(a.Style(), a.Out, x)
	}
	return nil
}

// explain explains each access. Where what comes out is not what was decided about the
// call, the explanation is withheld: the policy saw something that is not on the record.
func (f *explainFlags) explain(ctx context.Context, engine *rego.Engine, asks []recordedAsk) (all []explainOutput, err error) {
	strictest := map[bool]perm.Effect{false: perm.Allow, true: perm.Allow} // by whether the call asked while it ran
	for _, ask := range asks {
		x, err := f.explainOne(ctx, engine, ask)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
		strictest[x.Access.Dynamic] = min(strictest[x.Access.Dynamic], effectOf(x.Decision.Effect))
	}
	for i, ask := range asks {
		if why := ask.untold(all[i], strictest[all[i].Access.Dynamic]); why != "" {
			f.withhold(&all[i], ask, why)
		}
	}
	return all, nil
}

func (f *explainFlags) explainOne(ctx context.Context, engine *rego.Engine, ask recordedAsk) (explainOutput, error) {
	why, err := engine.Explain(ctx, ask.request)
	if err != nil {
		return explainOutput{}, err
	}
	x := explainOutput{Call: ask.call, Tool: ask.request.Tool.Name, Explanation: why, Access: ask.request.Access, Recorded: ask.decision, Notes: []string{}}
	if ask.unmet(x) {
		x.Decision = *ask.decision
	}
	if why.Decision.Effect == perm.Ask.String() {
		x.Approve = f.Hint("run", "--on-ask", "wait") + ", then " + f.Hint("approve", "CALL")
		if ask.pending {
			x.Approve = f.approve(ask)
		}
	}
	x.Notes = append(x.Notes, ask.notes(x)...)
	if d, err := engine.Decide(ctx, ask.request); err == nil {
		x.Notes = append(x.Notes, notHeld(d)...)
	}
	if _, is := x.required(); is {
		return x, nil
	}
	change, err := engine.SuggestAllow(ctx, ask.request)
	if errors.Is(err, rego.ErrNoFix) {
		return x, nil
	}
	x.Change = &change
	return x, err
}

// required reports whether the tool does not meet a requirement, and the place of the rule that has it; none: a result raised it.
func (x explainOutput) required() (at string, is bool) {
	i := slices.IndexFunc(x.Decision.Reasons, func(p perm.Reason) bool { return p.Set == "require" })
	if i < 0 || x.Decision.Effect != perm.Deny.String() {
		return "", false
	}
	return x.Decision.Reasons[i].At, true
}

// approve is the command that approves a call that waits. What a program wants to change
// is named.
func (f *explainFlags) approve(ask recordedAsk) string {
	if ask.request.Purpose == perm.PurposeApply {
		return f.Hint("approve", ask.call, "--question", ask.question)
	}
	return f.Hint("approve", ask.call)
}

// withhold takes an explanation back that is not the one of the call.
func (f *explainFlags) withhold(x *explainOutput, ask recordedAsk, why string) {
	x.Unknown, x.Approve, x.Change, x.Notes, x.Explanation = why, "", nil, []string{}, rego.Explanation{Decision: *ask.decision, Rules: []rego.RuleTrace{}}
	if ask.pending {
		x.Approve = f.approve(ask)
		x.Notes = append(x.Notes, "the call waits; what it asks: "+f.Hint("show", ask.call))
	}
}

func writeExplanation(p cli.Style, w io.Writer, x explainOutput) {
	effect := p.Good(x.Decision.Effect)
	if x.Decision.Effect == perm.Deny.String() {
		effect = p.Bad(x.Decision.Effect)
	}
	access, when := perm.ResourceAccess{Action: x.Access.Action, Resource: x.Access.Resource.Text, Method: x.Access.Method}, ""
	if x.Access.Dynamic {
		when = ", asked for while it ran"
	}
	if x.Unknown != "" {
		effect = p.Doubt("cannot tell")
	}
	_, _ = fmt.Fprintf(w, "%s  %s: %s%s\n", effect, cli.Printable(x.Tool), cli.Printable(access.String()), when)
	if x.Unknown != "" {
		_, _ = fmt.Fprintf(w, "  %s\n  remit run decided %s:\n", cli.Printable(x.Unknown), x.Decision.Effect)
	}
	for _, r := range x.Decision.Reasons {
		_, _ = fmt.Fprintf(w, "  %-8s %s\n", r.Set, cli.Printable(cli.WithPlace(r.Text, r.At)))
	}
	writeConsidered(p, w, x)
	for _, n := range x.Notes {
		_, _ = fmt.Fprintf(w, "%s %s\n", p.Doubt("·"), cli.Printable(n))
	}
	writeChange(p, w, x)
}

// writeConsidered tells of the rules that decided; where none did, of those that could
// have let the access through.
func writeConsidered(p cli.Style, w io.Writer, x explainOutput) {
	over, none := 0, !slices.ContainsFunc(x.Rules, func(c rego.RuleTrace) bool { return c.Decided })
	for _, c := range x.Rules {
		lets := none && (c.Set == "allow" || c.Set == "ask" || c.Set == "hold")
		switch {
		case c.Decided:
			_, _ = fmt.Fprintf(w, "%s %s %s gave it\n", p.Good("✓"), c.Set, c.At)
		case lets && c.Outcome == rego.RuleFailed:
			_, _ = fmt.Fprintf(w, "%s %s %s does not hold: %s\n", p.Doubt("·"), c.Set, c.At, c.Stopped)
		case lets && c.Outcome == rego.RuleSkipped:
			_, _ = fmt.Fprintf(w, "%s %s %s is about something else\n", p.Doubt("·"), c.Set, c.At)
		default:
			over++
			continue
		}
		for _, s := range c.Inputs {
			value := "nothing"
			if len(s.Value) > 0 {
				value = cli.Clip(string(s.Value), 100)
			}
			_, _ = fmt.Fprintf(w, "     %s %s\n", p.Faint(cli.Printable(s.Path)+" is"), cli.Printable(value))
		}
	}
	if over > 0 {
		_, _ = fmt.Fprintln(w, p.Faint("  "+cli.Count(over, "other rule")+" did not decide: --json tells of them"))
	}
}

func writeChange(p cli.Style, w io.Writer, x explainOutput) {
	if x.Unknown != "" && x.Approve == "" {
		return
	}
	if x.Approve != "" {
		_, _ = fmt.Fprintf(w, "to let it through, somebody else approves it: %s\n", x.Approve)
		return
	}
	switch at, is := x.required(); {
	case is && at == "":
		_, _ = fmt.Fprintln(w, "to let it through, call a tool that has what is required, or call in another session")
		return
	case is:
		_, _ = fmt.Fprintf(w, "to let it through, change the rule at %s, or call a tool that has what it requires\n", cli.Printable(at))
		return
	case x.Change == nil:
		_, _ = fmt.Fprintln(w, "no change of rules lets it through")
		return
	case len(x.Change.Edits) == 0:
		_, _ = fmt.Fprintln(w, "nothing has to change: the policy lets it through")
		return
	}
	_, _ = fmt.Fprintln(w, "the smallest change that lets it through:")
	for _, e := range x.Change.Edits {
		if e.At != "" {
			where := e.At
			if pack, inside, builtin := policies.Of(where); builtin {
				where = inside + " of a copy of the pack (remit policy new --from " + pack + ")"
			}
			_, _ = fmt.Fprintf(w, "  add to the rule at %s the condition\n", where)
		} else {
			_, _ = fmt.Fprintln(w, "  add the rule")
		}
		writeBlock(p, w, e.Text)
	}
	_, _ = fmt.Fprintf(w, "tried: the policy then says %s\n", x.Change.Effect)
}

// recordedAsk is what a policy was asked about a call, as far as it is recorded.
type recordedAsk struct {
	call     string
	request  perm.Request
	decision *perm.DecisionRecord // of the whole call
	stage    string
	why      string // of a call that was denied
	question string // the digest of what a call that waits asks
	pending  bool
	redacted bool
	during   bool // the call asked while it ran
	refused  bool // this access is the one that was denied
	gone     bool // the tool is not at hand, or is another one
}

// unmet tells that the rules let the access through, and the tool does not have what they require.
func (r recordedAsk) unmet(x explainOutput) bool {
	d := r.decision
	return d != nil && r.refused && d.Revision == x.Decision.Revision && slices.ContainsFunc(d.Reasons, func(p perm.Reason) bool { return p.Set == "require" })
}

// untold says why a decision cannot be made again, and is empty if it can: the same policy
// then decided as it does now.
func (r recordedAsk) untold(x explainOutput, strictest perm.Effect) string {
	d := r.decision
	switch {
	case d != nil && slices.ContainsFunc(d.Reasons, func(p perm.Reason) bool { return p.Set == "ask" && p.At == "" }):
		return "no rule asks here: remit asks a person about it by itself, whatever the rules say"
	case d == nil || d.Revision != x.Decision.Revision || r.stage != "" && r.stage != "policy":
		return ""
	case d.Effect != x.Decision.Effect && slices.ContainsFunc(d.Reasons, func(p perm.Reason) bool { return p.Set == "limit" }):
		return "a limit of the policy refused the call, and what was counted is not on the record"
	case r.stage == "policy" && d.Effect != perm.Deny.String():
		return "no rule refused the call: " + r.why
	case r.request.Purpose == perm.PurposeApply && d.Effect != x.Decision.Effect:
		return "what the call's program changed (input.changes, input.access.git) is not on the record"
	case d.Effect != strictest.String() || r.refused && d.Effect != x.Decision.Effect:
		return "the same policy decided otherwise, by something that is not on the record"
	}
	return ""
}

// effectOf reads an effect of a record; one that is not known counts as the strictest.
func effectOf(text string) perm.Effect {
	for _, e := range []perm.Effect{perm.Allow, perm.Hold, perm.Ask} {
		if e.String() == text {
			return e
		}
	}
	return perm.Deny
}

// notes say what may make the answer differ from the one that was given.
func (r recordedAsk) notes(x explainOutput) (notes []string) {
	if r.call == "" {
		return nil
	}
	if r.gone {
		notes = append(notes, "the tool that was called is not at hand: what it declares is taken as nothing")
	}
	if r.redacted {
		notes = append(notes, "the policy redacted a part of what was given: rules see (hidden) there")
	}
	if r.request.Purpose == perm.PurposeApply {
		notes = append(notes, "it is about what the call's program wants to change; input.changes is not on the record and is taken as none")
	}
	for _, c := range x.Rules {
		for _, s := range c.Inputs {
			if strings.HasPrefix(s.Path, "input.session.tools") || strings.HasPrefix(s.Path, "input.session.recent") || strings.HasPrefix(s.Path, "input.call.batch") {
				notes = append(notes, cli.WithPlace(s.Path+" is not on the record and is taken as none", c.At))
			}
		}
	}
	switch {
	case r.decision == nil:
	case r.stage != "" && r.stage != "policy":
		notes = append(notes, "the call was refused by the "+r.stage+", not by the policy")
	case r.decision.Revision != x.Decision.Revision:
		notes = append(notes, "another policy decided then: "+r.decision.Revision)
	case r.decision.Effect != x.Decision.Effect:
		notes = append(notes, "the call as a whole was decided otherwise: "+r.decision.Effect)
	}
	return notes
}

// recordedAsks finds the accesses that were decided for a call.
func recordedAsks(ctx context.Context, a *cli.App, f *explainFlags, id string) (asks []recordedAsk, err error) {
	j, err := f.Read(ctx, a)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	t, c, err := revert.LoadCall(ctx, j, id)
	if err != nil {
		return nil, err
	}
	base, accesses, err := recordedCall(c, &f.Workspace)
	if err != nil {
		return nil, err
	}
	if base.request.Principal, base.request.Session, err = whoAsked(ctx, j, t.Session, c); err != nil {
		return nil, err
	}
	base.request.Txn = perm.TxnFacts{ID: t.ID}
	called := fillTool(a, &base, c)
	if c.Denied != nil && !base.redacted && !base.during {
		// Only the one that was refused is on the record, and another may be next.
		accesses = wouldTouch(called, c.Denied.Input, accesses)
	}
	if len(accesses) == 0 {
		accesses = []record.Access{{Action: string(perm.Call), Resource: "tool://" + c.Tool.Name}}
	}
	for _, access := range accesses {
		r, err := perm.ParseResource(access.Resource)
		if err != nil {
			return nil, err
		}
		one := base
		one.request.Access = perm.AccessFacts{
			Action: perm.Action(access.Action), Resource: r.Facts(), Method: access.Method,
			Dynamic: one.during,
		}
		one.request.Access.Resource.Argv = argvOf(called, base.request.Call.Args, access)
		one.refused = c.Denied != nil && (access == c.Denied.Access || slices.Contains(c.Denied.Others, access))
		asks = append(asks, one)
	}
	if c.Failed != nil && c.Failed.Access != nil {
		inside, err := base.inside(c.Failed)
		return append(asks, inside), err
	}
	return asks, nil
}

// wouldTouch are all accesses that a call of the tool has before it runs; those
// that are known where that cannot be told.
func wouldTouch(t tool.Tool, input json.RawMessage, known []record.Access) (all []record.Access) {
	exact, err := t.Accesses(input)
	if err != nil || len(exact) == 0 {
		return known
	}
	for _, a := range exact {
		all = append(all, record.Access{Action: string(a.Action), Resource: a.Resource, Method: a.Method})
	}
	return all
}

// argvOf is the command line of an execute, which the record of an access leaves out.
func argvOf(t tool.Tool, input json.RawMessage, of record.Access) []string {
	exact, err := t.Accesses(input)
	for _, a := range exact {
		if err == nil && string(a.Action) == of.Action && a.Resource == of.Resource {
			return a.Argv.List()
		}
	}
	return nil
}

// inside is what the policy was asked about a call that ran, and refused.
func (r recordedAsk) inside(f *record.Failed) (recordedAsk, error) {
	resource, err := perm.ParseResource(f.Access.Resource)
	if err != nil {
		return r, err
	}
	r.request.Access = perm.AccessFacts{Action: perm.Action(f.Access.Action), Resource: resource.Facts(), Method: f.Access.Method, Dynamic: true}
	if f.Purpose != "" {
		r.request.Purpose = perm.Purpose(f.Purpose)
	}
	r.stage, r.why, r.refused, r.decision = f.Stage, f.Why, true, &perm.DecisionRecord{}
	return r, json.Unmarshal(f.Decision, r.decision)
}

func recordedCall(c *revert.Call, at *state.Workspace) (ask recordedAsk, accesses []record.Access, err error) {
	ask.call = c.Ref.Call
	ask.request = perm.Request{Purpose: perm.PurposeRun, Time: c.Began, Call: perm.CallFacts{ID: c.Ref.Call, Batch: perm.BatchFacts{Count: 1}}}
	var raw json.RawMessage
	switch {
	case c.Started != nil:
		s := c.Started
		ask.request.Call.Args, ask.redacted, accesses, raw = s.Input, len(s.Redacted) > 0, s.Access, s.Decision
		ask.request.Call.EffectClass, ask.request.Call.Declared = string(s.Class.OrPivot()), s.Declared
	case c.Held != nil:
		s := c.Held
		ask.request.Call.Args, ask.redacted, accesses, raw = s.Input, len(s.Redacted) > 0, s.Access, s.Decision
		ask.request.Call.EffectClass, ask.request.Call.Declared = string(s.Class.OrPivot()), s.Declared
	case c.Denied != nil:
		ask.request.Call.Args, ask.stage, ask.why, raw = c.Denied.Input, c.Denied.Stage, c.Denied.Why, c.Denied.Decision
		ask.request.Call.EffectClass, ask.request.Call.Declared = string(c.Denied.Class), c.Denied.Declared
		ask.redacted = strings.Contains(string(c.Denied.Input), `"(hidden)"`)
		if c.Denied.Access != (record.Access{}) {
			accesses = append([]record.Access{c.Denied.Access}, c.Denied.Others...)
		}
		ask.during, ask.request.Purpose = c.Denied.During, perm.Purpose(cmp.Or(c.Denied.Purpose, string(perm.PurposeRun)))
	case c.Asked != nil:
		ask.request.Call.Args, accesses, raw, ask.pending = c.Asked.Input, c.Asked.Access, c.Asked.Decision, c.Phase == revert.PhasePending
		ask.request.Call.EffectClass, ask.request.Call.Declared, ask.question = string(c.Asked.Class), c.Asked.Declared, c.Asked.Digest
		ask.during, ask.request.Purpose = c.Asked.During, perm.Purpose(cmp.Or(c.Asked.Purpose, string(perm.PurposeRun)))
	default:
		return ask, nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("no policy was asked about call %s", c.Ref.Call), Why: "it was refused before", Fix: at.Hint("show", c.Ref.Call) + " says why"}
	}
	if len(raw) > 0 {
		ask.decision = &perm.DecisionRecord{}
		err = json.Unmarshal(raw, ask.decision)
	}
	return ask, accesses, err
}

// fillTool fills in what the tool of a call declares.
func fillTool(a *cli.App, ask *recordedAsk, c *revert.Call) (called tool.Tool) {
	ask.gone = true
	for _, t := range state.Tools(a) {
		if t.Name() != c.Tool.Name || c.Tool.Digest != "" && t.Digest() != c.Tool.Digest {
			continue
		}
		called, ask.gone, ask.request.Tool = t, false, t.Facts()
		if script := t.Spec().ParseScript; script != nil && !ask.redacted {
			ask.request.Call.Script = script(ask.request.Call.Args)
		}
	}
	if ask.gone {
		ask.request.Tool = perm.ToolFacts{Name: c.Tool.Name, Version: c.Tool.Version, Digest: c.Tool.Digest, Grade: string(provenance.Ungraded)}
	}
	if ask.request.Call.EffectClass == "" {
		ask.request.Call.EffectClass = string(effect.Pivot)
	}
	return called
}

// whoAsked reads a session's principal, and the labels that it had.
func whoAsked(ctx context.Context, j journal.Journal, session string, c *revert.Call) (p perm.Principal, s perm.SessionFacts, err error) {
	s.ID = session
	q := journal.Query{Session: session, Kinds: []kind.Kind{kind.Session, kind.Labelled}}
	for e, err := range j.Entries(ctx, q) {
		if err != nil {
			return p, s, err
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return p, s, err
		}
		switch b := rec.Body.(type) {
		case *record.Session:
			if err := json.Unmarshal(b.Principal, &p); err != nil {
				return p, s, err
			}
		case *record.Labelled:
			if b.By.Call != c.Ref.Call && !rec.At.After(c.Began) {
				s.Labels = append(s.Labels, b.Labels...)
			}
		}
	}
	return p, s, nil
}
