package script

import (
	"encoding/json"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// Answer is the JSON form of the outcome of one call. Optional keys are present
// only if they have a value.
type Answer struct {
	Line          int                `json:"line"`
	Released      bool               `json:"released,omitempty"` // the policy held the call at this line, and the commit released it
	Call          string             `json:"call"`               // empty: the line is not a call
	Txn           string             `json:"txn"`                // empty: the line is not a call
	Tool          string             `json:"tool"`
	Status        tool.Status        `json:"status"`
	Stage         string             `json:"stage,omitempty"`
	Output        json.RawMessage    `json:"output"`
	Decision      *callview.Decision `json:"decision"`
	EffectClass   effect.Class       `json:"effect_class"`
	Changes       []tool.Change      `json:"changes"`
	Verdict       *tool.Verdict      `json:"verdict"`
	Reverted      string             `json:"reverted,omitempty"`
	RevertResults []effect.Result    `json:"revert,omitempty"`
	Error         *tool.Problem      `json:"error"`
	Text          string             `json:"text,omitempty"`   // text for the model, if there is no output or a filter adds to it
	Filter        string             `json:"filter,omitempty"` // filter that refused the call
	Ends          string             `json:"ends,omitempty"`   // why the caller should make no further call
}

func answerOf(n int, o tool.Outcome) Answer {
	a := Answer{
		Line: n, Call: o.Call, Txn: o.Txn, Tool: o.Tool, Status: o.Status, Stage: o.Stage, Output: o.Output,
		Decision: callview.DecisionOf(o.Decision), EffectClass: o.EffectClass, Changes: o.Changes, Verdict: o.Verdict,
		Reverted: o.Reverted, RevertResults: o.RevertResults, Error: o.Error, Filter: o.Filter, Ends: o.EndLoop,
	}
	if !o.Status.OK() || o.Status == tool.StatusHeld || o.EndLoop != "" {
		a.Text = o.Text
	}
	if a.Changes == nil {
		a.Changes = []tool.Change{}
	}
	return a
}

// Summary is the JSON form of one transaction. It has no line number. Without a
// transaction, no line of the script ran.
type Summary struct {
	Txn         string                  `json:"txn"`
	State       revert.TxnState         `json:"state"`
	Calls       int                     `json:"calls"`
	Done        int                     `json:"done"`
	Denied      int                     `json:"denied"`
	Failed      int                     `json:"failed"`
	Unknown     int                     `json:"unknown"`
	Held        int                     `json:"held,omitempty"`    // calls that wait for the commit
	Waiting     int                     `json:"waiting,omitempty"` // calls that wait for approval
	NotReverted []revert.ResourceResult `json:"not_reverted"`

	ProgramsFailed int `json:"programs_failed,omitempty"` // done calls whose program returned a code other than 0, or died of a signal

	NotRun *notRun `json:"not_run,omitempty"` // lines that did not run because a call stopped the script

	Committing bool `json:"committing,omitempty"` // an open transaction whose commit began and stopped

	Commit *commitState `json:"commit,omitempty"` // the policy did not let the transaction commit
}

// commitState says why the policy did not let a transaction commit.
type commitState struct {
	State   string `json:"state"`             // waits, denied, undecided
	Why     string `json:"why"`               // the reasons
	Request string `json:"request,omitempty"` // digest that an approval names
}

// notRun is the rest of a script after the line that stopped it.
type notRun struct {
	From  int `json:"from"`            // first line
	Lines int `json:"lines,omitempty"` // 0: unknown, because the script comes from standard input
}

func newSummary() Summary { return Summary{NotReverted: []revert.ResourceResult{}} }

// count adds an outcome, also of a line that is not a call.
func (s *Summary) count(o tool.Outcome) {
	s.Calls++
	switch o.Status {
	case tool.StatusPending:
		s.Waiting++
	case tool.StatusDone:
		s.Done++
		if e, is := callview.ProgramOf(o.Output); is && e.Failed() {
			s.ProgramsFailed++
		}
	case tool.StatusHeld:
		s.Held++
	case tool.StatusDenied:
		s.Denied++
	case tool.StatusInvalid, tool.StatusFailed, tool.StatusVerifyFailed, tool.StatusCancelled, tool.StatusTimeout:
		s.Failed++
	case tool.StatusUnknown:
		s.Unknown++
	default:
		s.Unknown++
	}
	for _, r := range o.RevertResults {
		if !r.Outcome.Clean() {
			s.NotReverted = append(s.NotReverted, revert.ResourceResult{Call: o.Call, Tool: o.Tool, Result: r})
		}
	}
}

// resultWriter reports what happens, to a person or to a program.
type resultWriter interface {
	call(n int, c call, o tool.Outcome)
	released(n int, c call, o tool.Outcome)
	mark(n int, name string)
	back(n int, name string, r revert.Report)
	end(s Summary)
}

// jsonResults writes the results of a script as JSON.
type jsonResults struct{ cli.JSONWriter }

func (t jsonResults) call(n int, _ call, o tool.Outcome) { t.Write(answerOf(n, o)) }

func (t jsonResults) released(n int, _ call, o tool.Outcome) {
	a := answerOf(n, o)
	a.Released = true
	t.Write(a)
}

func (t jsonResults) mark(n int, name string) {
	t.Write(struct {
		Line      int    `json:"line"`
		Savepoint string `json:"savepoint"`
	}{n, name})
}

func (t jsonResults) back(n int, name string, r revert.Report) {
	t.Write(struct {
		Line        int                     `json:"line"`
		RevertTo    string                  `json:"revert_to"`
		Complete    bool                    `json:"complete"`
		Items       []revert.ResourceResult `json:"items"`
		NotReverted []revert.ResourceResult `json:"not_reverted"`
	}{n, name, r.Complete(), cli.Listed(r.Items), r.NotReverted()})
}

func (t jsonResults) end(s Summary) { t.Write(s) }
