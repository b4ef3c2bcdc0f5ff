package perm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Effect is the outcome of a decision. The zero Effect is Deny.
type Effect uint8

// The effects, strictest first: where several apply the first one wins.
const (
	Deny  Effect = iota // refused
	Ask                 // allowed once somebody approves
	Hold                // queued, runs when its transaction commits
	Allow               // runs now
)

// String returns the effect's name on the wire; anything unknown is "deny".
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

// Reason is why: the text that the policy's author wrote, and where.
type Reason struct {
	Text string `json:"text"`
	At   string `json:"at,omitempty"`  // file:line of the rule, "" when no rule gave it
	Set  string `json:"set,omitempty"` // deny, ask, hold, allow, ensure, require, ...
}

// Details is what an engine says beside the effect.
type Details struct {
	Reasons              []Reason // why this effect; never empty for a decision of an engine
	Hints                []string // texts for the model: what is allowed instead
	Requires             []Reason // verify, revert, sandbox, preview: unmet = denied; Text is the requirement
	FailedPostconditions []Reason // broken postconditions, only for purpose verify
	HideReasons          []Reason // why the tool is not listed, only for purpose list
	Labels               []string // labels that the session gets
	Redact               []string // JSON pointers into {"args": …, "output": …} of what is neither logged nor shown
	Masks                []string // what a sandboxed program does not see; one that is not a Mask = denied
	Limits               []Limit  // budgets that the call must fit into; over one = denied
	Revision             string   // digest of the policies that decided
}

// Decision is an effect with its reasons. It cannot be changed after it was
// made, and the zero Decision denies.
type Decision struct {
	effect  Effect
	details Details
}

// NewDecision makes a decision; only engines call it. It keeps copies of all
// slices. An effect that is not one of this package's is Deny.
func NewDecision(effect Effect, d Details) Decision {
	if effect > Allow {
		effect = Deny
	}
	return Decision{effect: effect, details: d.clone()}
}

// Effect returns the outcome.
func (d Decision) Effect() Effect { return d.effect }

// Reasons returns a copy of the reasons, in the policy's order.
func (d Decision) Reasons() []Reason { return slices.Clone(d.details.Reasons) }

// Details returns a copy of everything beside the effect.
func (d Decision) Details() Details { return d.details.clone() }

// Limits returns a copy of the budgets that the call must fit into.
func (d Decision) Limits() []Limit { return slices.Clone(d.details.Limits) }

// Revision names the policies that decided, "" when none did.
func (d Decision) Revision() string { return d.details.Revision }

// MarshalJSON writes the form that answers and the journal hold.
func (d Decision) MarshalJSON() ([]byte, error) { return json.Marshal(d.Record()) }

// DecisionRecord is a decision as data, for the journal and for answers. It
// carries no authority: nothing turns a record back into a Decision.
type DecisionRecord struct {
	Effect   string   `json:"effect"`
	Reasons  []Reason `json:"reasons"`
	Hints    []string `json:"hints,omitempty"`
	Revision string   `json:"revision"`
}

// A record holds at most so many reasons and hints, each of at most so many bytes:
// a rule can make them of what it was asked about, which is larger than that.
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

// Record returns d as data: what is too long for a record is cut.
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
	return DecisionRecord{
		Effect: d.effect.String(), Reasons: reasons,
		Hints: hints, Revision: d.details.Revision,
	}
}

func (d Details) clone() Details {
	return Details{
		Reasons: slices.Clone(d.Reasons), Hints: slices.Clone(d.Hints),
		Requires: slices.Clone(d.Requires), FailedPostconditions: slices.Clone(d.FailedPostconditions), HideReasons: slices.Clone(d.HideReasons),
		Labels: slices.Clone(d.Labels), Redact: slices.Clone(d.Redact),
		Masks: slices.Clone(d.Masks), Limits: slices.Clone(d.Limits), Revision: d.Revision,
	}
}
