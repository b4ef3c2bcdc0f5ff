package main

import (
	"encoding/json"
	"io"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// answer is how one call of a script ended, as programs read it. The keys that
// may be missing are there where they have something to say.
type answer struct {
	Line        int             `json:"line"`
	Released    bool            `json:"released,omitempty"` // the call was held at this line, and the commit ran it
	Call        string          `json:"call"`               // empty: the line was no call
	Txn         string          `json:"txn"`                // empty: the line was no call
	Tool        string          `json:"tool"`
	Status      tool.Status     `json:"status"`
	Stage       string          `json:"stage,omitempty"`
	Output      json.RawMessage `json:"output"`
	Decision    *decision       `json:"decision"`
	EffectClass effect.Class    `json:"effect_class"`
	Changes     []tool.Change   `json:"changes"`
	Verdict     *tool.Verdict   `json:"verdict"`
	TakenBack   string          `json:"taken_back,omitempty"`
	Undo        []effect.Result `json:"undo,omitempty"`
	Error       *tool.Problem   `json:"error"`
	Text        string          `json:"text,omitempty"`   // what to tell the model, of everything that has no output, or that filters add to it
	Filter      string          `json:"filter,omitempty"` // that refused the call
	Ends        string          `json:"ends,omitempty"`   // why no further call should come
}

// decision is what was decided, and by which lines of which policy.
type decision struct {
	Effect   string   `json:"effect"`
	Reasons  []reason `json:"reasons"`
	Revision string   `json:"revision"`
}

type reason struct {
	Text string `json:"text"`
	At   string `json:"at"`
}

func answerOf(n int, o tool.Outcome) answer {
	a := answer{
		Line: n, Call: o.Call, Txn: o.Txn, Tool: o.Tool, Status: o.Status, Stage: o.Stage, Output: o.Output,
		Decision: decisionOf(o.Decision), EffectClass: o.EffectClass, Changes: o.Changes, Verdict: o.Verdict,
		TakenBack: o.Reverted, Undo: o.RevertResults, Error: o.Error, Filter: o.Filter, Ends: o.EndLoop,
	}
	if !o.Status.OK() || o.Status == tool.StatusHeld || o.EndLoop != "" {
		a.Text = o.Text
	}
	if a.Changes == nil {
		a.Changes = []tool.Change{}
	}
	return a
}

func decisionOf(r *perm.DecisionRecord) *decision {
	if r == nil {
		return nil
	}
	d := &decision{Effect: r.Effect, Reasons: []reason{}, Revision: r.Revision}
	for _, why := range r.Reasons {
		d.Reasons = append(d.Reasons, reason{why.Text, why.At})
	}
	return d
}

// summary is what became of one transaction. It is the one answer without a
// line. Without a transaction, nothing of the script was run.
type summary struct {
	Txn       string                  `json:"txn"`
	State     revert.TxnState         `json:"state"`
	Calls     int                     `json:"calls"`
	Done      int                     `json:"done"`
	Denied    int                     `json:"denied"`
	Failed    int                     `json:"failed"`
	Unknown   int                     `json:"unknown"`
	Held      int                     `json:"held,omitempty"`    // calls that still wait for the commit
	Waiting   int                     `json:"waiting,omitempty"` // for approval
	NotUndone []revert.ResourceResult `json:"not_undone"`

	ProgramsFailed int `json:"programs_failed,omitempty"` // counts done calls whose program returned a code other than 0, or died of a signal

	NotRun *notRun `json:"not_run,omitempty"` // lines of the script that a call stopped before them

	Committing bool `json:"committing,omitempty"` // only of an open one: its commit has begun, and stopped
}

// notRun is what a script holds after the line that stopped it.
type notRun struct {
	From  int `json:"from"`            // line
	Lines int `json:"lines,omitempty"` // 0: the script comes from standard input, and their number is not known
}

func newSummary() summary { return summary{NotUndone: []revert.ResourceResult{}} }

// count adds an answer, also one of a line that was no call.
func (s *summary) count(o tool.Outcome) {
	s.Calls++
	switch o.Status {
	case tool.StatusPending:
		s.Waiting++
	case tool.StatusDone:
		s.Done++
		if e, is := endedOf(o.Output); is && e.failed() {
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
			s.NotUndone = append(s.NotUndone, revert.ResourceResult{Call: o.Call, Tool: o.Tool, Result: r})
		}
	}
}

// resultWriter tells what happens, to a person or to a program.
type resultWriter interface {
	call(n int, c call, o tool.Outcome)
	released(n int, c call, o tool.Outcome)
	mark(n int, name string)
	back(n int, name string, r revert.Report)
	end(s summary)
}

// jsonWriter writes one object a line.
type jsonWriter struct {
	enc *json.Encoder
	out *output
}

func newJSON(w io.Writer) jsonWriter {
	out, ok := w.(*output)
	if !ok {
		out = &output{w: w}
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return jsonWriter{enc, out}
}

// jsonResults writes the results of a script as JSON.
type jsonResults struct{ jsonWriter }

func (t jsonResults) call(n int, _ call, o tool.Outcome) { t.write(answerOf(n, o)) }

func (t jsonResults) released(n int, _ call, o tool.Outcome) {
	a := answerOf(n, o)
	a.Released = true
	t.write(a)
}

func (t jsonResults) mark(n int, name string) {
	t.write(struct {
		Line      int    `json:"line"`
		Savepoint string `json:"savepoint"`
	}{n, name})
}

func (t jsonResults) back(n int, name string, r revert.Report) {
	t.write(struct {
		Line      int                     `json:"line"`
		RevertTo  string                  `json:"revert_to"`
		Complete  bool                    `json:"complete"`
		Items     []revert.ResourceResult `json:"items"`
		NotUndone []revert.ResourceResult `json:"not_undone"`
	}{n, name, r.Complete(), listed(r.Items), r.NotUndone()})
}

func (t jsonResults) end(s summary) { t.write(s) }

// write leaves it to the output to tell what could not be written.
func (t jsonWriter) write(v any) {
	if err := t.enc.Encode(v); err != nil {
		t.out.lose(err)
	}
}

// listed makes an empty list of a missing one, so that programs read a list.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
