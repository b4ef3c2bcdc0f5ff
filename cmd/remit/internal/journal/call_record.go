package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// callRecord is everything about one call.
type callRecord struct {
	callLine
	Decided     *record.Decided            `json:"decided,omitempty"` // what a person said became of it
	Dropped     *record.Dropped            `json:"dropped,omitempty"` // it was held, and will not be released
	Txn         string                     `json:"txn"`
	Session     string                     `json:"session"`
	Principal   string                     `json:"principal"`
	Client      *perm.ClientFacts          `json:"client,omitempty"` // who the session is shown to, where somebody said
	ToolVersion string                     `json:"tool_version,omitempty"`
	ToolDigest  string                     `json:"tool_digest,omitempty"`
	Began       time.Time                  `json:"began"`
	Ended       *time.Time                 `json:"ended"` // null while in flight
	Stage       string                     `json:"stage,omitempty"`
	Why         string                     `json:"why,omitempty"` // of everything but a success
	Key         string                     `json:"key,omitempty"`
	Input       json.RawMessage            `json:"input"`
	Redacted    []string                   `json:"redacted,omitempty"` // what the policy keeps out of input and output
	Decision    *render.Decision           `json:"decision"`
	EffectClass effect.Class               `json:"effect_class"`
	Declared    bool                       `json:"declared"`
	Confinement string                     `json:"confinement,omitempty"`
	Coverage    effect.Coverage            `json:"coverage,omitempty"` // how much of what the call did is known, where its confinement does not say it
	Observed    []string                   `json:"observed,omitempty"` // with coverage observed: the roots that were compared
	Access      []record.Access            `json:"access"`
	Refused     *refusedRecord             `json:"refused,omitempty"` // by what the call asked while it ran
	Approval    *record.Approval           `json:"approval"`
	Approved    []record.Approved          `json:"approved,omitempty"` // what the call asked for while it ran, and who approved that
	Asks        []record.Access            `json:"asks,omitempty"`     // of one that runs and waits: what for
	Preview     string                     `json:"preview,omitempty"`  // of one that waits with that
	Question    string                     `json:"question,omitempty"` // of one that waits: the digest of what it asks
	Expires     *time.Time                 `json:"expires,omitempty"`  // of one that waits: later answers do not count
	Answered    *record.Answered           `json:"answered,omitempty"` // of one that waits: the newest answer, which counts when it goes on
	Notes       map[string]json.RawMessage `json:"notes,omitempty"`
	Filter      string                     `json:"filter,omitempty"`       // that refused the call
	AnsweredBy  string                     `json:"answered_by,omitempty"`  // the filter that gave the result in the tool's place
	Replaced    []record.Replacement       `json:"replaced,omitempty"`     // inputs that filters put another one in the place of
	Ends        string                     `json:"ends,omitempty"`         // why a filter wanted the caller's loop to end
	Output      json.RawMessage            `json:"output"`                 // as the tool returned it
	Delivered   json.RawMessage            `json:"delivered,omitempty"`    // what filters made of that
	DeliveredBy []string                   `json:"delivered_by,omitempty"` // which
	Undelivered string                     `json:"undelivered,omitempty"`  // why filters let nothing of it be delivered
	Verdicts    []record.Verified          `json:"verdicts"`
	Undo        *undoRecord                `json:"undo"`                    // the newest
	Earlier     []*undoRecord              `json:"earlier_undos,omitempty"` // undos before it of which something still counts, oldest first
}

// refusedRecord is what a call asked for while it ran, and did not get.
type refusedRecord struct {
	record.Access
	Decision *render.Decision `json:"decision"`
}

// undoRecord is how a call was taken back.
type undoRecord struct {
	Call     string          `json:"call"` // id of the undo
	Txn      string          `json:"txn"`
	Cause    string          `json:"cause"`
	By       string          `json:"by,omitempty"` // who asked for it
	Complete bool            `json:"complete"`
	Results  []effect.Result `json:"results"` // empty while in flight

	steps []effect.Step // that it was made of
}

func recordOf(t *revert.Txn, c *revert.Call, who state.Principal, tools tool.Registry) (callRecord, error) {
	r := callRecord{
		callLine: lineOf(t, c), Dropped: c.Dropped,
		Txn: c.Ref.Txn, Session: c.Session, Principal: who.ID, Client: who.Client, ToolVersion: c.Tool.Version, ToolDigest: c.Tool.Digest,
		Began: c.Began, Access: []record.Access{}, Notes: c.Notes, Verdicts: cli.Listed(c.Verified),
		Input: json.RawMessage("null"), Output: json.RawMessage("null"),
	}
	if !c.Ended.IsZero() {
		r.Ended = &c.Ended
	}
	var decided json.RawMessage
	switch {
	case c.Started != nil:
		decided = r.started(c.Started)
	case c.Held != nil:
		decided = r.started(&c.Held.Started)
	case c.Denied != nil:
		d := c.Denied
		r.Stage, r.Why, r.Key, r.Input, decided = d.Stage, d.Why, d.Key, d.Input, d.Decision
		r.Filter, r.Replaced, r.Ends = d.Filter, d.Replaced, d.EndLoop
		r.EffectClass, r.Declared = d.Class, d.Declared
		if d.Access != (record.Access{}) {
			r.Access = append([]record.Access{d.Access}, d.Others...)
		}
	case c.Asked != nil:
		r.Input, r.Access, decided = c.Asked.Input, cli.Listed(c.Asked.Access), c.Asked.Decision
		r.EffectClass, r.Declared, r.Replaced = c.Asked.Class, c.Asked.Declared, c.Asked.Replaced
		for _, a := range c.Asked.Approvals { // it runs again, and then it is known which of them counts
			r.Approved = append(r.Approved, a)
		}
		r.question(c)
	case c.Invalid != nil:
		r.Why = c.Invalid.Why
	}
	if r.Approved = append(r.Approved, c.Approvals...); c.Started != nil && c.Waits() {
		r.Asks = c.Asked.Access
		r.question(c)
	}
	r.ended(c)
	if c.Erased != nil {
		r.EffectClass = c.Erased.Class
	}
	for _, u := range c.Undos() {
		if r.Undo != nil {
			r.Earlier = append(r.Earlier, r.Undo)
		}
		r.Undo = undoOf(u)
	}
	if t, ok := tools.Get(c.Tool.Name); ok {
		r.Input = render.HideArguments(r.Input, t.Spec().Hints.Sensitive)
		r.declared(c, t)
	}
	return r, r.decide(decided)
}

// question fills in what a call waits with.
func (r *callRecord) question(c *revert.Call) {
	r.Question, r.Expires, r.Answered, r.Preview = c.Asked.Digest, &c.Asked.Expires, c.Answered, c.Asked.Preview
}

func (r *callRecord) started(s *record.Started) (decided json.RawMessage) {
	r.Key, r.Input, r.EffectClass, r.Declared = s.Key, s.Input, s.Class, s.Declared
	r.Coverage, r.Observed = s.Coverage, s.Observed
	r.Confinement, r.Access, r.Approval, r.Redacted = s.Confinement, cli.Listed(s.Access), s.Approval, s.Redacted
	r.Replaced, r.AnsweredBy, r.Ends = s.Replaced, s.AnsweredBy, s.Ends
	return s.Decision
}

// declared fills in what the journal does not say of a call whose code was never
// entered, where the tool at hand is the one that was meant.
func (r *callRecord) declared(c *revert.Call, t tool.Tool) {
	if c.Started != nil || c.Held != nil || c.Erased != nil || t.Digest() != c.Tool.Digest {
		return
	}
	s := t.Spec()
	r.Confinement, r.Coverage, r.Observed = string(s.Confinement), s.Coverage, s.Observed
	if r.EffectClass == "" {
		r.EffectClass, r.Declared = t.Class(), s.EffectClass != ""
	}
}

func (r *callRecord) ended(c *revert.Call) {
	r.Decided = c.Decided
	switch {
	case c.Done != nil:
		r.Output, r.Delivered, r.DeliveredBy, r.Undelivered = c.Done.Output, c.Done.Delivered, c.Done.DeliveredBy, c.Done.Undelivered
		r.Ends = cmp.Or(c.Done.Ends, r.Ends)
	case c.Failed != nil:
		r.Stage, r.Why = c.Failed.Stage, c.Failed.Why
		if c.Failed.Access != nil {
			r.Refused = &refusedRecord{*c.Failed.Access, nil}
			var d perm.DecisionRecord
			if json.Unmarshal(c.Failed.Decision, &d) == nil {
				r.Refused.Decision = render.DecisionOf(&d)
			}
		}
	case c.Unknown != nil:
		r.Why = c.Unknown.Why
	}
}

func (r *callRecord) decide(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var d perm.DecisionRecord
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("the decision of call %s: %w", r.Call, err)
	}
	r.Decision = render.DecisionOf(&d)
	return nil
}

func undoOf(u *revert.Reversal) *undoRecord {
	r := &undoRecord{Call: u.Call, Txn: u.Txn, Cause: u.Reverting.Cause, By: u.Reverting.By, Results: []effect.Result{}, steps: u.Reverting.Steps}
	if u.Reverted != nil {
		r.Complete, r.Results = u.Reverted.Complete, cli.Listed(u.Reverted.Results)
	}
	return r
}
