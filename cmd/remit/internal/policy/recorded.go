package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// recordedRequest is a policy request of a call, as far as the journal has it.
type recordedRequest struct {
	call          string
	request       perm.Request
	decision      *perm.DecisionRecord // for the whole call
	stage         string
	why           string // reason of a denial
	requestDigest string // digest of the approval request of a pending call
	pending       bool
	redacted      bool
	during        bool // the call asked while it ran
	refused       bool // the policy denied this access
	toolUnknown   bool // the tool is unknown or has another declaration
	// missing are the fields of the input that the journal does not have.
	missing []string
}

// lacksRequired reports whether the rules permit the access and the tool lacks a
// required property.
func (r recordedRequest) lacksRequired(x explainOutput) bool {
	d := r.decision
	return d != nil && r.refused && d.Revision == x.Decision.Revision && slices.ContainsFunc(d.Reasons, func(p perm.Reason) bool { return p.Set == "require" })
}

// unknownReason says why the decision cannot be repeated. It returns "" if the same
// policy decides the same.
func (r recordedRequest) unknownReason(x explainOutput, strictest perm.Effect) string {
	d := r.decision
	switch {
	case d != nil && slices.ContainsFunc(d.Reasons, func(p perm.Reason) bool { return p.Set == "ask" && p.At == "" }):
		return "no rule asks here: remit asks a person about it by itself, whatever the rules say"
	case d == nil || d.Revision != x.Decision.Revision || r.stage != "" && r.stage != "policy":
		return ""
	case d.Effect != x.Decision.Effect && slices.ContainsFunc(d.Reasons, func(p perm.Reason) bool { return p.Set == "limit" }):
		return "a budget of the policy refused the call, and this command counts no budgets"
	case r.stage == "policy" && d.Effect != perm.Deny.String():
		return "no rule refused the call: " + r.why
	case r.request.Purpose == perm.PurposeApply && d.Effect != x.Decision.Effect:
		return "what the call's program changed (input.changes, input.access.git) is not on the record"
	case d.Effect != strictest.String() || r.refused && d.Effect != x.Decision.Effect:
		return "the same policy decided otherwise, by something that is not on the record"
	}
	return ""
}

// effectOf parses a recorded effect. An unknown one counts as deny.
func effectOf(text string) perm.Effect {
	for _, e := range []perm.Effect{perm.Allow, perm.Hold, perm.Ask} {
		if e.String() == text {
			return e
		}
	}
	return perm.Deny
}

// notes lists the facts that can make this decision differ from the recorded
// one.
func (r recordedRequest) notes(x explainOutput) (notes []string) {
	if r.call == "" {
		return nil
	}
	if r.toolUnknown {
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
			if slices.ContainsFunc(r.missing, func(field string) bool { return strings.HasPrefix(s.Path, "input."+field) }) {
				notes = append(notes, cli.WithPlace(s.Path+" is not on the record and is taken as none", c.At))
			}
		}
	}
	if r.decision == nil {
		return notes
	}
	other := r.stage != "" && r.stage != "policy" // it refused the call after the policy
	switch {
	case r.stage == "approver":
		notes = append(notes, "the policy asked, and the call was refused: "+r.why)
	case other:
		notes = append(notes, "the call was refused by the "+r.stage+", not by the policy: "+r.why)
	}
	switch {
	case r.decision.Revision != x.Decision.Revision:
		notes = append(notes, "another policy decided then: "+r.decision.Revision)
	case !other && r.decision.Effect != x.Decision.Effect:
		notes = append(notes, "the call as a whole was decided otherwise: "+r.decision.Effect)
	}
	return notes
}

// recordedRequests returns the requests that the policy decided for a call.
func recordedRequests(ctx context.Context, a *cli.App, f *explainFlags, id string) (asks []recordedRequest, err error) {
	j, err := f.Read(ctx, a)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if id, err = state.FullID(ctx, j, id); err != nil {
		return nil, err
	}
	t, c, err := revert.LoadCall(ctx, j, id)
	if err != nil {
		return nil, err
	}
	base, accesses, err := recordedCall(c, &f.Workspace)
	if err != nil {
		return nil, err
	}
	if base.request.Principal, base.request.Session, err = readCaller(ctx, j, t.Session, c); err != nil {
		return nil, err
	}
	base.request.Txn = perm.TxnFacts{ID: t.ID}
	called := fillTool(a, &base, c)
	if err := base.fillFacts(ctx, j, t.Session); err != nil {
		return nil, err
	}
	if c.Denied != nil && !base.redacted && !base.during {
		// The journal has only the denied access. The call can need others.
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

// fillFacts adds what the policy saw and what no other record has.
func (r *recordedRequest) fillFacts(ctx context.Context, j journal.Journal, session string) error {
	r.missing = []string{"session.tools", "session.recent", "call.batch", "txn.calls"}
	if r.during {
		return nil
	}
	for d, err := range agent.RecordedDecisions(ctx, j, session) {
		if err != nil {
			return err
		}
		if d.Call != r.call || len(d.Requests) == 0 {
			continue
		}
		req := d.Requests[0]
		r.missing, r.request.Session, r.request.Txn, r.request.Time, r.request.Call.Batch = d.Unknown, req.Session, req.Txn, req.Time, req.Call.Batch
		r.request.Call.Script, r.request.Call.URLs, r.request.Call.Prompt = req.Call.Script, req.Call.URLs, req.Call.Prompt
		r.request.Call.Values, r.request.Call.ValuesCut = req.Call.Values, req.Call.ValuesCut
		if !slices.Contains(d.Unknown, "tool.tags") {
			r.request.Tool, r.toolUnknown = req.Tool, false
		}
	}
	return nil
}

// wouldTouch returns all accesses of a call before it runs, or the known ones
// if the tool cannot tell.
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

// argvOf returns the command line of an execute access, which the record omits.
func argvOf(t tool.Tool, input json.RawMessage, of record.Access) []string {
	exact, err := t.Accesses(input)
	for _, a := range exact {
		if err == nil && string(a.Action) == of.Action && a.Resource == of.Resource {
			return a.Argv.List()
		}
	}
	return nil
}

// inside returns the request that a running call made, and that the policy
// denied.
func (r recordedRequest) inside(f *record.Failed) (recordedRequest, error) {
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

func recordedCall(c *revert.Call, at *state.Workspace) (ask recordedRequest, accesses []record.Access, err error) {
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
		ask.request.Call.EffectClass, ask.request.Call.Declared, ask.requestDigest = string(c.Asked.Class), c.Asked.Declared, c.Asked.Digest
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

// fillTool adds the declaration of the called tool to the request.
func fillTool(a *cli.App, ask *recordedRequest, c *revert.Call) (called tool.Tool) {
	ask.toolUnknown = true
	for _, t := range state.Tools(a) {
		if t.Name() != c.Tool.Name || c.Tool.Digest != "" && t.Digest() != c.Tool.Digest {
			continue
		}
		called, ask.toolUnknown, ask.request.Tool = t, false, t.Facts()
		if script := t.Spec().ParseScript; script != nil && !ask.redacted {
			ask.request.Call.Script = script(ask.request.Call.Args)
		}
	}
	if ask.toolUnknown {
		ask.request.Tool = perm.ToolFacts{Name: c.Tool.Name, Version: c.Tool.Version, Digest: c.Tool.Digest, Grade: string(provenance.Ungraded)}
	}
	if ask.request.Call.EffectClass == "" {
		ask.request.Call.EffectClass = string(effect.Pivot)
	}
	return called
}

// readCaller reads the principal of a session and its labels at the time of the
// call.
func readCaller(ctx context.Context, j journal.Journal, session string, c *revert.Call) (p perm.Principal, s perm.SessionFacts, err error) {
	s.ID = session
	q := journal.Query{Session: session, Kinds: []record.Kind{record.KindSession, record.KindLabelled}}
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
			s.Data = b.Data
		case *record.Labelled:
			if b.By.Call != c.Ref.Call && !rec.At.After(c.Began) {
				s.Labels = append(s.Labels, b.Labels...)
			}
		}
	}
	return p, s, nil
}
