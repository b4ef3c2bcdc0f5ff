package learn

import (
	"context"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// Use is what the calls that went well used of an allow rule of a policy.
type Use struct {
	At       string   `json:"at"`    // file:line of the rule
	Count    int      `json:"count"` // calls; 0: the rule was never used
	Calls    []string `json:"calls"` // examples
	Narrower string   `json:"narrower,omitempty"`
}

// Tighten decides the calls that went well by a policy. For each allow rule, it
// returns how often the rule allowed one of them, and narrower rules that cover
// the same calls. They add to the set learned of a learned policy.
func (e *Evidence) Tighten(ctx context.Context, policy *rego.Engine, o Options) ([]Use, error) {
	by := map[string]*Evidence{}
	for _, s := range e.good {
		d, err := policy.Decide(ctx, s.Request)
		if err != nil {
			return nil, fmt.Errorf("learn: call %s: %w", s.Call.ID, err)
		}
		if d.Effect() != perm.Allow {
			continue
		}
		for _, r := range d.Reasons() {
			if by[r.At] == nil {
				by[r.At] = &Evidence{bad: e.bad}
			}
			by[r.At].good = append(by[r.At].good, s)
		}
	}
	uses := []Use{}
	for _, rule := range policy.Rules() {
		if rule.Set != "allow" {
			continue
		}
		u := Use{At: rule.At, Calls: []string{}}
		if of := by[rule.At]; of != nil {
			u.fill(of, o)
		}
		uses = append(uses, u)
	}
	return uses, nil
}

func (u *Use) fill(of *Evidence, o Options) {
	calls := map[string]bool{}
	for _, s := range of.good {
		calls[s.Call.ID] = true
		u.Calls = example(u.Calls, s.Call.ID)
	}
	u.Count = len(calls)
	var b strings.Builder
	for _, r := range of.build(o.filled()).Rules {
		b.WriteString(r.text())
	}
	u.Narrower = strings.TrimSpace(b.String())
}
