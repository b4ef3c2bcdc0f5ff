package callview

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// Attempt is what the policy decided about a call, from the record that has it.
type Attempt struct {
	Input            json.RawMessage
	Redacted         []string
	Replaced         []record.Replacement
	Class            effect.Class
	Declared         bool
	Confinement      string
	Coverage         effect.Coverage
	Observed         []string
	Access           []record.Access
	Approval         *record.Approval
	Approved         []record.Approved // approvals that the call got while it ran
	Asked            *record.Asked     // the open approval request; nil: there is none
	AnsweredBy, Ends string
	Why              string
	Raw              json.RawMessage
	Decision         *Decision
	Refused          *record.Access // access that the call did not get while it ran
	RefusedBy        *Decision
}

// AttemptOf reads the first of these records that the call has: its start, its
// hold, its denial or its approval request.
func AttemptOf(c *revert.Call) Attempt {
	a := Attempt{Input: json.RawMessage("null")}
	switch {
	case c.Started != nil:
		a.start(c.Started)
	case c.Held != nil:
		a.start(&c.Held.Started)
	case c.Denied != nil:
		d := c.Denied
		a.Input, a.Why, a.Raw, a.Replaced, a.Ends = d.Input, d.Why, d.Decision, d.Replaced, d.EndLoop
		a.Class, a.Declared = d.Class, d.Declared
		if d.Access != (record.Access{}) {
			a.Access = append([]record.Access{d.Access}, d.Others...)
		}
	case c.Asked != nil:
		a.Input, a.Access, a.Raw, a.Replaced = c.Asked.Input, c.Asked.Access, c.Asked.Decision, c.Asked.Replaced
		a.Class, a.Declared = c.Asked.Class, c.Asked.Declared
		a.Approved, a.Asked = slices.Clone(c.Asked.Approvals), c.Asked
	case c.Invalid != nil:
		a.Why = c.Invalid.Why
	}
	a.Approved = append(a.Approved, c.Approvals...)
	if c.Started != nil && c.Waits() {
		a.Asked = c.Asked
	}
	a.end(c)
	return a
}

func (a *Attempt) start(s *record.Started) {
	a.Input, a.Redacted, a.Replaced, a.Class, a.Declared = s.Input, s.Redacted, s.Replaced, s.Class, s.Declared
	a.Confinement, a.Coverage, a.Observed, a.Access, a.Approval = s.Confinement, s.Coverage, s.Observed, s.Access, s.Approval
	a.AnsweredBy, a.Ends, a.Raw = s.AnsweredBy, s.Ends, s.Decision
}

// end adds what the record of the outcome says.
func (a *Attempt) end(c *revert.Call) {
	switch {
	case c.Done != nil && c.Done.Ends != "":
		a.Ends = c.Done.Ends
	case c.Failed != nil:
		a.Why, a.Refused = c.Failed.Why, c.Failed.Access
		var d perm.DecisionRecord
		if a.Refused != nil && json.Unmarshal(c.Failed.Decision, &d) == nil {
			a.RefusedBy = DecisionOf(&d)
		}
	case c.Unknown != nil:
		a.Why = c.Unknown.Why
	}
	if c.Erased != nil {
		a.Class = c.Erased.Class
	}
}

// Declare adds the declaration of a tool whose code did not start. The journal
// does not have it.
func (a *Attempt) Declare(c *revert.Call, t tool.Tool) {
	if c.Started != nil || c.Held != nil || c.Erased != nil || t.Digest() != c.Tool.Digest {
		return
	}
	s := t.Spec()
	a.Confinement, a.Coverage, a.Observed = string(s.Confinement), s.Coverage, s.Observed
	if a.Class == "" {
		a.Class, a.Declared = t.Class(), s.EffectClass != ""
	}
}

// Decode reads the decision. It returns an error if the record of it is not
// readable.
func (a *Attempt) Decode(call string) error {
	if a.Raw == nil {
		return nil
	}
	var d perm.DecisionRecord
	if err := json.Unmarshal(a.Raw, &d); err != nil {
		return fmt.Errorf("the decision of call %s: %w", call, err)
	}
	a.Decision = DecisionOf(&d)
	return nil
}
