package perm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Effect is the outcome of a decision. The zero Effect is Deny.
type Effect uint8

// The effects, strictest first. If several apply, the first one wins.
const (
	Deny  Effect = iota // refused
	Ask                 // allowed after an approval
	Hold                // queued; runs when its transaction commits
	Allow               // runs now
)

// String returns the name of the effect in JSON. An unknown effect is "deny".
func (e Effect) String() string {
	switch e {
	case Ask:
		return "ask"
	case Hold:
		return "hold"
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	default:
		return "deny"
	}
}

// Reason is one reason of a decision: the text of the policy's author, and its
// position.
type Reason struct {
	Text string `json:"text"`
	At   string `json:"at,omitempty"`  // file:line of the rule; "": no rule gave the reason
	Set  string `json:"set,omitempty"` // deny, ask, hold, allow, ensure, require, ...
}

// Details holds the parts of a decision beside the effect.
type Details struct {
	Reasons              []Reason // reasons for this effect; never empty for a decision of an engine
	Hints                []string // texts for the model: what the policy allows instead
	Requires             []Reason // verify, revert, sandbox, preview; an unmet one denies the call; Text is the requirement
	FailedPostconditions []Reason // failed postconditions, only for purpose verify
	HideReasons          []Reason // why the tool is hidden, only for purpose list
	Labels               []string // labels to add to the session
	Redact               []string // JSON pointers into {"args": …, "output": …} to values that are neither logged nor shown
	Masks                []string // files that a sandboxed program does not see; a text that is not a Mask denies the call
	Remember             Remember // what an approval covers beside the call; only for an ask
	Limits               []Limit  // budgets of the call; a call over one is denied
	Revision             string   // digest of the policies that decided
}

// Decision is an effect with its reasons. It is immutable. The zero Decision
// denies.
type Decision struct {
	effect  Effect
	details Details
}

// NewDecision creates a decision. Only engines call it. It copies all slices.
// An effect that this package does not define becomes Deny.
func NewDecision(effect Effect, d Details) Decision {
	if effect > Allow {
		effect = Deny
	}
	return Decision{effect: effect, details: d.clone()}
}

// Effect returns the outcome.
func (d Decision) Effect() Effect { return d.effect }

// Reasons returns a copy of the reasons, in the order of the policy.
func (d Decision) Reasons() []Reason { return slices.Clone(d.details.Reasons) }

// Has reports whether a reason is of a set, such as hold.
func (d Decision) Has(set string) bool {
	return slices.ContainsFunc(d.details.Reasons, func(r Reason) bool { return r.Set == set })
}

// Details returns a copy of the parts beside the effect.
func (d Decision) Details() Details { return d.details.clone() }

// Limits returns a copy of the budgets of the call.
func (d Decision) Limits() []Limit { return slices.Clone(d.details.Limits) }

// Revision returns the digest of the policies that decided, or "".
func (d Decision) Revision() string { return d.details.Revision }

// MarshalJSON writes the form that responses and the journal hold.
func (d Decision) MarshalJSON() ([]byte, error) { return json.Marshal(d.Record()) }

// DecisionRecord is a decision as data, for the journal and for responses. It
// carries no authority: no function turns a record back into a Decision.
type DecisionRecord struct {
	Effect   string    `json:"effect"`
	Reasons  []Reason  `json:"reasons"`
	Hints    []string  `json:"hints,omitempty"`
	Remember *Remember `json:"remember,omitempty"` // missing: the approver says what the approval covers
	Revision string    `json:"revision"`
}

// Bounds of a record: the number of reasons and hints, and the bytes of each. A
// rule can derive them from its input, which can be larger.
const (
	maxReasons = 100
	maxReason  = 16 << 10
)

func clipped(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}

// Record returns d as data. It truncates what is too long for a record.
func (d Decision) Record() DecisionRecord {
	reasons := d.Reasons()
	if reasons == nil {
		reasons = []Reason{}
	}
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(reasons[:maxReasons:maxReasons], Reason{Text: fmt.Sprintf("and %d more", more)})
	}
	for i, r := range reasons {
		reasons[i].Text = clipped(r.Text)
	}
	hints := slices.Clone(d.details.Hints)
	hints = hints[:min(len(hints), maxReasons)]
	for i, h := range hints {
		hints[i] = clipped(h)
	}
	out := DecisionRecord{
		Effect: d.effect.String(), Reasons: reasons,
		Hints: hints, Revision: d.details.Revision,
	}
	if d.details.Remember.Scope != "" {
		own := d.details.Remember.clone()
		out.Remember = &own
	}
	return out
}

func (d Details) clone() Details {
	return Details{
		Reasons: slices.Clone(d.Reasons), Hints: slices.Clone(d.Hints),
		Requires: slices.Clone(d.Requires), FailedPostconditions: slices.Clone(d.FailedPostconditions), HideReasons: slices.Clone(d.HideReasons),
		Labels: slices.Clone(d.Labels), Redact: slices.Clone(d.Redact),
		Masks: slices.Clone(d.Masks), Remember: d.Remember.clone(), Limits: slices.Clone(d.Limits), Revision: d.Revision,
	}
}
