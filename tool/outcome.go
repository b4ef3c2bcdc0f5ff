package tool

import (
	"encoding/json"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// Status is the final status of a call. The zero Status is not an outcome and
// counts as unknown.
type Status string

// The outcomes of a call.
const (
	StatusDone         Status = "done"          // executed, settled, verified
	StatusHeld         Status = "held"          // queued until commit
	StatusPending      Status = "pending"       // waits for approval
	StatusInvalid      Status = "invalid"       // refused before policy
	StatusDenied       Status = "denied"        // refused by a grant, the policy, an approver, a filter or the tool
	StatusFailed       Status = "failed"        // ran; proven to have no effect
	StatusVerifyFailed Status = "verify_failed" // ran, failed verification, was reverted as far as Reverted says
	StatusCancelled    Status = "cancelled"     // like failed, because its caller cancelled
	StatusTimeout      Status = "timeout"       // like failed, because it timed out
	StatusUnknown      Status = "unknown"       // the effect cannot be determined
)

// Statuses returns every outcome, in the order of the documentation.
func Statuses() []Status {
	return []Status{
		StatusDone, StatusHeld, StatusPending, StatusInvalid, StatusDenied, StatusFailed,
		StatusVerifyFailed, StatusCancelled, StatusTimeout, StatusUnknown,
	}
}

// OK reports whether the call is a success: done, or held for commit.
func (s Status) OK() bool { return s == StatusDone || s == StatusHeld }

// exitCode returns the exit code for a status, without the revert that followed.
func (s Status) exitCode() int {
	switch s {
	case StatusDone, StatusHeld:
		return 0
	case StatusDenied:
		return 3
	case StatusPending:
		return 4
	case StatusInvalid, StatusFailed, StatusVerifyFailed, StatusCancelled, StatusTimeout:
		return 5
	case StatusUnknown:
		return 7
	default:
		return 7
	}
}

// Outcome is the result of one call, as data. The zero Outcome is not a
// success.
type Outcome struct {
	Call          string               `json:"call"`
	Txn           string               `json:"txn"`
	Tool          string               `json:"tool"`
	Status        Status               `json:"status"`
	Stage         string               `json:"stage,omitempty"`      // stage of a denial: grant, policy, approver, filter, tool
	Output        json.RawMessage      `json:"output"`               // null unless done
	MediaType     string               `json:"media_type,omitempty"` // media type of the text of a done call, if its tool names one
	Result        Result               `json:"-"`                    // the whole result of a done call
	Input         json.RawMessage      `json:"-"`                    // the input as recorded: canonical and redacted
	Decision      *perm.DecisionRecord `json:"decision"`             // null if the policy was not asked
	EffectClass   effect.Class         `json:"effect_class,omitempty"`
	Changes       []Change             `json:"changes"`
	Verdict       *Verdict             `json:"verdict"`            // null if nothing was verified
	Reverted      string               `json:"reverted,omitempty"` // all, some, none
	RevertResults []effect.Result      `json:"revert,omitempty"`   // results of the revert of this call
	Error         *Problem             `json:"error"`              // null for a success
	Text          string               `json:"text"`               // for the model
	Filter        string               `json:"filter,omitempty"`   // filter that refused the call, or answered in the tool's place
	EndLoop       string               `json:"ends,omitempty"`     // if set, why the model loop must end
	Redacted      bool                 `json:"-"`                  // a part of the call is redacted: show no other detail of it
}

// Change is one change of a call, for people and programs.
type Change struct {
	Resource string        `json:"resource"`
	Kind     string        `json:"kind"`
	Before   *effect.Token `json:"before"` // null: did not exist
	After    *effect.Token `json:"after"`  // null: does not exist
}

// Verdict is the result of verification.
type Verdict struct {
	Presence effect.Presence `json:"is"`
	Findings []string        `json:"findings,omitempty"`
}

// Problem says what went wrong and what to do about it.
type Problem struct {
	What string `json:"what"`          // one sentence
	Why  string `json:"why"`           // the reason, with the rule that gave it
	Fix  string `json:"fix,omitempty"` // how to allow or correct the call
}

// ExitCode returns the exit code of a command whose only call had this outcome.
// A call that failed verification and is not fully reverted has code 6.
func (o Outcome) ExitCode() int {
	if o.Status == StatusVerifyFailed && o.Reverted != "all" {
		return 6
	}
	return o.Status.exitCode()
}

// Err returns nil for a success and a *CallError for everything else.
func (o Outcome) Err() error {
	if o.Status.OK() {
		return nil
	}
	e := &CallError{Status: o.Status, Call: o.Call, Tool: o.Tool, Why: "no outcome was recorded"}
	if e.Status == "" {
		e.Status = StatusUnknown
	}
	if o.Error != nil {
		e.Why = o.Error.Why
	}
	return e
}
