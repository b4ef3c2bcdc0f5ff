package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// shownCall is a call as remit show prints it: the value of package revert, with
// its IDs and the facts that its transaction and its session add.
type shownCall struct {
	ID        string            `json:"call"`
	Txn       string            `json:"txn"`
	Principal string            `json:"principal"`
	Client    *perm.ClientFacts `json:"client,omitempty"`   // client of the session, if its record names one
	Status    string            `json:"status"`             // status of the outcome, or in_flight
	Reverted  string            `json:"reverted,omitempty"` // all, some, none or in_flight
	Queued    bool              `json:"queued,omitempty"`   // the commit releases the call
	*revert.Call
	Earlier []*revert.Reversal `json:"earlier_reverts,omitempty"` // reverts before the newest one that still count, oldest first

	attempt attempt
}

// show returns a call of a transaction for remit show. It returns an error if
// the decision of the call is not readable.
func show(t *revert.Txn, c *revert.Call, who state.Principal, tools tool.Registry) (shownCall, error) {
	s := shownCall{
		ID: c.Ref.Call, Txn: c.Ref.Txn, Principal: who.ID, Client: who.Client,
		Status: render.Status(c), Reverted: c.RevertSummary(), Queued: t.End == "" && c.IsHeld(),
	}
	called, known := tools.Get(c.Tool.Name)
	var sensitive []string
	if known {
		sensitive = called.Spec().Hints.Sensitive
	}
	s.Call = withoutSensitive(c, sensitive)
	for _, u := range c.Reversals() {
		if u != c.Reversal {
			s.Earlier = append(s.Earlier, withoutInverses(u))
		}
	}
	s.attempt = attemptOf(s.Call)
	if known {
		s.attempt.declare(c, called)
	}
	return s, s.attempt.decode(c.Ref.Call)
}

// withoutSensitive returns a copy of a call that hides the named arguments. It
// leaves out the inverses of changes, which can contain the same values.
func withoutSensitive(c *revert.Call, names []string) *revert.Call {
	out := *c
	if c.Started != nil {
		s := *c.Started
		s.Input, s.InputDigest = hide(s.Input, s.InputDigest, names)
		out.Started = &s
	}
	if c.Held != nil {
		h := *c.Held
		h.Input, h.InputDigest = hide(h.Input, h.InputDigest, names)
		out.Held = &h
	}
	if c.Denied != nil {
		d := *c.Denied
		d.Input, d.InputDigest = hide(d.Input, d.InputDigest, names)
		out.Denied = &d
	}
	if c.Asked != nil {
		a := *c.Asked
		a.Input, a.InputDigest = hide(a.Input, a.InputDigest, names)
		out.Asked = &a
	}
	out.Changes, out.Verified = cli.Listed(changesOnly(c.Changes)), cli.Listed(c.Verified)
	out.Reversal, out.Redo = withoutInverses(c.Reversal), withoutInverses(c.Redo)
	return &out
}

// hide hides the named arguments of an input. It drops the digest of an input
// in which it hid a value, because the digest of a short value tells the value.
func hide(input json.RawMessage, digest string, names []string) (json.RawMessage, string) {
	hidden := render.HideArguments(input, names)
	if !bytes.Equal(hidden, input) {
		digest = ""
	}
	return hidden, digest
}

func withoutInverses(u *revert.Reversal) *revert.Reversal {
	if u == nil {
		return nil
	}
	out := *u
	out.Changes = changesOnly(u.Changes)
	out.Reverting.Steps = slices.Clone(u.Reverting.Steps)
	for i := range out.Reverting.Steps {
		out.Reverting.Steps[i].Change.Inverse, out.Reverting.Steps[i].Change.Blobs = nil, nil
	}
	return &out
}

func changesOnly(all []effect.Change) []effect.Change {
	out := slices.Clone(all)
	for i := range out {
		out[i].Inverse, out[i].Blobs = nil, nil
	}
	return out
}

// attempt is what the policy decided about a call, from the record that has it.
type attempt struct {
	input            json.RawMessage
	redacted         []string
	replaced         []record.Replacement
	class            effect.Class
	declared         bool
	confinement      string
	coverage         effect.Coverage
	observed         []string
	access           []record.Access
	approval         *record.Approval
	approved         []record.Approved // approvals that the call got while it ran
	asked            *record.Asked     // the open approval request; nil: there is none
	answeredBy, ends string
	why              string
	raw              json.RawMessage
	decision         *render.Decision
	refused          *record.Access // access that the call did not get while it ran
	refusedBy        *render.Decision
}

// attemptOf reads the first of these records that the call has: its start, its
// hold, its denial or its approval request.
func attemptOf(c *revert.Call) attempt {
	a := attempt{input: json.RawMessage("null")}
	switch {
	case c.Started != nil:
		a.start(c.Started)
	case c.Held != nil:
		a.start(&c.Held.Started)
	case c.Denied != nil:
		d := c.Denied
		a.input, a.why, a.raw, a.replaced, a.ends = d.Input, d.Why, d.Decision, d.Replaced, d.EndLoop
		a.class, a.declared = d.Class, d.Declared
		if d.Access != (record.Access{}) {
			a.access = append([]record.Access{d.Access}, d.Others...)
		}
	case c.Asked != nil:
		a.input, a.access, a.raw, a.replaced = c.Asked.Input, c.Asked.Access, c.Asked.Decision, c.Asked.Replaced
		a.class, a.declared = c.Asked.Class, c.Asked.Declared
		a.approved, a.asked = slices.Clone(c.Asked.Approvals), c.Asked
	case c.Invalid != nil:
		a.why = c.Invalid.Why
	}
	a.approved = append(a.approved, c.Approvals...)
	if c.Started != nil && c.Waits() {
		a.asked = c.Asked
	}
	a.end(c)
	return a
}

func (a *attempt) start(s *record.Started) {
	a.input, a.redacted, a.replaced, a.class, a.declared = s.Input, s.Redacted, s.Replaced, s.Class, s.Declared
	a.confinement, a.coverage, a.observed, a.access, a.approval = s.Confinement, s.Coverage, s.Observed, s.Access, s.Approval
	a.answeredBy, a.ends, a.raw = s.AnsweredBy, s.Ends, s.Decision
}

// end adds what the record of the outcome says.
func (a *attempt) end(c *revert.Call) {
	switch {
	case c.Done != nil && c.Done.Ends != "":
		a.ends = c.Done.Ends
	case c.Failed != nil:
		a.why, a.refused = c.Failed.Why, c.Failed.Access
		var d perm.DecisionRecord
		if a.refused != nil && json.Unmarshal(c.Failed.Decision, &d) == nil {
			a.refusedBy = render.DecisionOf(&d)
		}
	case c.Unknown != nil:
		a.why = c.Unknown.Why
	}
	if c.Erased != nil {
		a.class = c.Erased.Class
	}
}

// declare adds the declaration of a tool whose code did not start. The journal
// does not have it.
func (a *attempt) declare(c *revert.Call, t tool.Tool) {
	if c.Started != nil || c.Held != nil || c.Erased != nil || t.Digest() != c.Tool.Digest {
		return
	}
	s := t.Spec()
	a.confinement, a.coverage, a.observed = string(s.Confinement), s.Coverage, s.Observed
	if a.class == "" {
		a.class, a.declared = t.Class(), s.EffectClass != ""
	}
}

// decode reads the decision.
func (a *attempt) decode(call string) error {
	if a.raw == nil {
		return nil
	}
	var d perm.DecisionRecord
	if err := json.Unmarshal(a.raw, &d); err != nil {
		return fmt.Errorf("the decision of call %s: %w", call, err)
	}
	a.decision = render.DecisionOf(&d)
	return nil
}
