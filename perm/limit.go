package perm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
)

// Limit is a budget that a policy sets for the calls of some tools. The engine
// only returns it. The runtime checks it against its counts, in one step with
// counting the call.
type Limit struct {
	Budget string      `json:"budget"`           // name of the budget, for people
	Max    json.Number `json:"max"`              // upper bound of the count or the sum
	Sum    string      `json:"sum,omitempty"`    // counter of the tool whose sum the budget bounds; missing: the number of calls
	Per    string      `json:"per,omitempty"`    // session, transaction or principal: the scope whose calls count together; missing: session
	Window string      `json:"window,omitempty"` // 1m, 1h or 24h; missing: all calls
	Tools  []string    `json:"tools,omitempty"`  // tools whose calls count, besides the tool of the call; a list or a set
	At     string      `json:"at,omitempty"`     // file:line of the rule
}

// The scopes of a limit. PerPrincipal counts the calls of all sessions of the
// principal, and of the principals that hold a grant delegated by it.
const (
	PerSession     = "session"
	PerTransaction = "transaction"
	PerPrincipal   = "principal"
)

// Shared reports whether calls of other sessions or processes also count. If
// so, the journal orders them.
func (l Limit) Shared() bool { return l.Per != "" && l.Per != PerSession }

// Same reports whether two limits are the same budget with the same bound.
func (l Limit) Same(o Limit) bool {
	return l.Budget == o.Budget && l.Max == o.Max && l.Sum == o.Sum && l.Per == o.Per && l.Window == o.Window && slices.Equal(l.Tools, o.Tools)
}

// Check returns an error if the limit is invalid.
func (l Limit) Check() error {
	most, err := canon.ParseAmount(string(l.Max))
	switch {
	case l.Budget == "":
		return errors.New("a limit names its budget")
	case err != nil || most.Sign() < 0:
		return errors.New("max of a limit is a number that is not negative")
	case !slices.Contains([]string{"", PerSession, PerTransaction, PerPrincipal}, l.Per):
		return errors.New("per of a limit is one of session, transaction, principal, or left out for the session")
	case !slices.Contains([]string{"", "1m", "1h", "24h"}, l.Window):
		return errors.New("window of a limit is one of 1m, 1h, 24h, or left out for the whole session")
	}
	return nil
}

// Over returns why a call exceeds the limit, or "" if it does not. The argument
// facts is the session before the call, including in-flight calls. The argument
// adds holds what the call adds to sums, and must hold the sum of the limit.
func (l Limit) Over(facts SessionFacts, tool string, adds map[string]json.Number) string {
	if err := l.Check(); err != nil {
		return err.Error()
	}
	most, _ := canon.ParseAmount(string(l.Max))
	need, _ := canon.ParseAmount("1")
	if l.Sum != "" {
		own, counted := adds[l.Sum]
		if !counted {
			return fmt.Sprintf("the budget %q is about the sum %q, which the tool %s does not count", l.Budget, l.Sum, tool)
		}
		var err error
		if need, err = canon.ParseAmount(string(own)); err != nil {
			return fmt.Sprintf("the budget %q cannot be held: the sum %q is no number", l.Budget, l.Sum)
		}
	}
	spent := l.spent(facts, tool)
	if spent.Plus(need).Cmp(most) <= 0 {
		return ""
	}
	left := most.Minus(spent)
	if left.Sign() < 0 {
		left = canon.Amount{}
	}
	return fmt.Sprintf("the budget %q of %s %s has %s left, less than this call needs", l.Budget, most, l.words(), left)
}

func (l Limit) spent(facts SessionFacts, tool string) canon.Amount {
	var all canon.Amount
	for i, name := range append([]string{tool}, l.Tools...) {
		if i > 0 && (name == tool || slices.Contains(l.Tools[:i-1], name)) {
			continue // already counted
		}
		counts, _ := facts.Tools.Of(name)
		t := counts.Counts
		if l.Window != "" {
			t = counts.Windows[l.Window]
		}
		text := fmt.Sprint(t.Run + t.Failed + t.InFlight)
		if l.Sum != "" {
			text = string(t.Sums[l.Sum])
		}
		if a, err := canon.ParseAmount(text); err == nil { // a tool without counts has no sums
			all = all.Plus(a)
		}
	}
	return all
}

func (l Limit) words() string {
	what, span := "calls", "a "+cmp.Or(l.Per, PerSession)
	if l.Sum != "" {
		what = "of " + l.Sum
	}
	if l.Window != "" {
		span = "in " + l.Window
		if l.Shared() {
			span += " of the " + l.Per
		}
	}
	return what + " " + span
}
