package render

import "github.com/remit-dev/remit/perm"

// Decision is what was decided, and by which lines of which policy.
type Decision struct {
	Effect   string   `json:"effect"`
	Reasons  []Reason `json:"reasons"`
	Revision string   `json:"revision"`
}

type Reason struct {
	Text string `json:"text"`
	At   string `json:"at"`
}

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
