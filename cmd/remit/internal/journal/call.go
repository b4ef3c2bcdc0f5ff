package journal

import (
	"errors"

	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// shownCall is a call as remit show prints it: the value of package revert, with
// its IDs and the facts that its transaction and its session add.
type shownCall struct {
	ID        string            `json:"call"`
	Txn       string            `json:"txn"`
	Principal string            `json:"principal"`
	Client    *perm.ClientFacts `json:"client,omitempty"`   // client of the session, if its record names one
	Status    string            `json:"status"`             // status of the outcome, or in_flight
	Reverted  string            `json:"reverted,omitempty"` // all, some, none or in_flight
	Queued    bool              `json:"queued,omitempty"`   // the commit releases the call
	*revert.Call
	Commit  *callview.Commit   `json:"commit,omitempty"`          // newest decision about the commit of its transaction, unless the policy allowed it unasked
	Earlier []*revert.Reversal `json:"earlier_reverts,omitempty"` // reverts before the newest one that still count, oldest first

	attempt callview.Attempt
}

// show returns a call of a transaction for remit show. It returns an error if
// the decision of the call is not readable.
func show(t *revert.Txn, c *revert.Call, who state.Principal, tools tool.Registry) (shownCall, error) {
	s := shownCall{
		ID: c.Ref.Call, Txn: c.Ref.Txn, Principal: who.ID, Client: who.Client,
		Status: callview.Status(c), Reverted: c.RevertSummary(), Queued: t.End == "" && c.IsHeld(),
	}
	called, known := tools.Get(c.Tool.Name)
	var sensitive []string
	if known {
		sensitive = called.Spec().Hints.Sensitive
	}
	s.Call = callview.WithoutSensitive(c, sensitive)
	for _, u := range c.Reversals() {
		if u != c.Reversal {
			s.Earlier = append(s.Earlier, callview.WithoutInverses(u))
		}
	}
	s.attempt = callview.AttemptOf(s.Call)
	if known {
		s.attempt.Declare(c, called)
	}
	var err error
	s.Commit, err = callview.CommitOf(t)
	return s, errors.Join(err, s.attempt.Decode(c.Ref.Call))
}
