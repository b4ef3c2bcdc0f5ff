package callview

import "github.com/remit-dev/remit/perm"

// Decision is the JSON form of a policy decision.
type Decision struct {
	Effect   string   `json:"effect"`
	Reasons  []Reason `json:"reasons"`
	Revision string   `json:"revision"`
}

// Reason is a reason of a decision, with the place of its rule.
type Reason struct {
	Text string `json:"text"`
	At   string `json:"at"`
}

// DecisionOf returns the JSON form of a decision, nil for nil.
func DecisionOf(r *perm.DecisionRecord) *Decision {
	if r == nil {
		return nil
	}
	d := &Decision{Effect: r.Effect, Reasons: []Reason{}, Revision: r.Revision}
	for _, why := range r.Reasons {
		d.Reasons = append(d.Reasons, Reason{why.Text, why.At})
	}
	return d
}
