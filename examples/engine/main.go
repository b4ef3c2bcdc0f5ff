// Command engine puts its own engine in front of the rules: outside working
// hours it denies every change.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// officeHoursEngine is an engine that only denies more than the engine behind
// it.
type officeHoursEngine struct {
	from, to int // hours of the day, UTC
	rules    perm.Engine
}

// Decide reads only the request, and takes the time from it, so that a decision
// can be replayed. An error of the rules is passed on, and denies.
func (h officeHoursEngine) Decide(ctx context.Context, r perm.Request) (perm.Decision, error) {
	changes := r.Access.Action != perm.Read && r.Access.Action != perm.List
	hour := r.Time.UTC().Hour()
	if r.Purpose == perm.PurposeRun && changes && (hour < h.from || hour >= h.to) {
		return perm.NewDecision(perm.Deny, perm.Details{
			Reasons: []perm.Reason{{Text: fmt.Sprintf("nothing is changed outside %d to %d o'clock UTC", h.from, h.to)}},
			Hints:   []string{"reading is allowed at any time"},
		}), nil
	}
	return h.rules.Decide(ctx, r)
}

// newEngine puts the hours in front of the workspace policy.
func newEngine() (perm.Engine, error) {
	rules, err := rego.Load(rego.Source{FS: policies.Workspace(), Prefix: policies.Prefix})
	if err != nil {
		return nil, err
	}
	return officeHoursEngine{from: 8, to: 18, rules: rules}, nil
}

func main() {
	if _, err := newEngine(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("give it to a runtime: agent.New(agent.Policy(engine), ...)")
}
