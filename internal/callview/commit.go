package callview

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

// Commit is the JSON form of the newest decision about the commit of a
// transaction.
type Commit struct {
	State   string   `json:"state"` // waits, approved, denied
	By      string   `json:"by,omitempty"`
	Why     string   `json:"why,omitempty"` // of the person
	Reasons []Reason `json:"reasons"`       // of the policy
}

// CommitOf returns the newest decision about the commit of a transaction. It
// returns nil without one, and if the policy allowed the commit unasked.
func CommitOf(t *revert.Txn) (*Commit, error) {
	if len(t.Commits) == 0 {
		return nil, nil
	}
	newest := t.Commits[len(t.Commits)-1]
	body := newest.Decided
	if body == nil || body.Effect == "allow" { // erased, or unasked
		return nil, nil
	}
	var d perm.DecisionRecord
	if err := json.Unmarshal(body.Decision, &d); err != nil {
		return nil, fmt.Errorf("the decision about the commit of %s: %w", t.ID, err)
	}
	c := &Commit{State: "denied", Reasons: DecisionOf(&d).Reasons}
	answer := newest.Answered
	if body.Answer != nil {
		answer = body.Answer
	}
	switch {
	case answer != nil:
		c.By, c.Why = answer.By, answer.Why
		if answer.Approved {
			c.State = "approved"
		}
	case body.Waits():
		c.State = "waits"
	}
	return c, nil
}

// Words describes the decision in one line.
func (c *Commit) Words() string {
	if c.By != "" {
		words := c.State + " by " + c.By
		if c.Why != "" {
			words += ": " + c.Why
		}
		return words
	}
	reasons := make([]string, len(c.Reasons))
	for i, r := range c.Reasons {
		reasons[i] = r.Text
		if r.At != "" {
			reasons[i] += " (" + r.At + ")"
		}
	}
	words := map[string]string{"waits": "waits for approval"}[c.State]
	if words == "" {
		words = c.State + " by the policy"
	}
	return strings.TrimSuffix(words+": "+strings.Join(reasons, "; "), ": ")
}
