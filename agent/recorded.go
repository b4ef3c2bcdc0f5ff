package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// RecordedDecision is a decision about the start of a call, as the journal has
// it. A program can decide the same again, by the same or by another policy.
type RecordedDecision struct {
	Session, Txn, Call string
	Pos                int64     // position of the record
	At                 time.Time // of the record
	Stage              string    // who refused the call: grant, policy, approver, filter; empty: it was not refused
	Decision           perm.DecisionRecord
	Asked              bool // the call waited, or got an approval, since the policy asked
	// Requests are what the policy saw, one for each access. A call that the
	// policy denied has only the access that it denied.
	Requests []perm.Request
	Sums     map[string]json.Number // amounts that the call adds to the counters of its session
	// Unknown are the paths of the input that the journal does not have, such as
	// call.args. Empty: Requests are complete. Without Requests, the record was
	// erased or pruned, or is of an older program.
	Unknown []string
}

// RecordedDecisions returns the decisions of a session on the journal, in the
// order in which the session counted the calls. It reads all records of the
// session into memory. It returns what the engine decided before each call, and
// not what it decided while calls ran and about reverts. RecordedCommits has the
// decisions about commits.
func RecordedDecisions(ctx context.Context, j journal.Journal, session string) iter.Seq2[RecordedDecision, error] {
	return func(yield func(RecordedDecision, error) bool) {
		r := newReplay(session)
		if err := r.read(ctx, j); err != nil {
			yield(RecordedDecision{}, fmt.Errorf("session %s: %w", session, err))
			return
		}
		for _, d := range r.gone {
			if !yield(d, nil) {
				return
			}
		}
		for _, e := range r.epochs {
			if !e.decide(r, yield) {
				return
			}
		}
	}
}

// replay computes what the policy saw of a session from the records of it.
type replay struct {
	id        string
	principal perm.Principal
	client    perm.ClientFacts
	data      json.RawMessage
	opened    bool // the record of the session is readable
	raised    []*record.Labelled
	counting  []positioned            // those that change counts, in order
	calls     map[string][]positioned // the same, by call
	txns      map[string]*replayedTxn
	tools     map[string]perm.ToolFacts // by digest
	epochs    []*epoch
	erased    []int64 // positions of what was erased or pruned
	gone      []RecordedDecision
	lostCalls map[string]bool
	commits   []recordedCommit
}

func newReplay(session string) *replay {
	return &replay{id: session, calls: map[string][]positioned{}, txns: map[string]*replayedTxn{}, tools: map[string]perm.ToolFacts{}, lostCalls: map[string]bool{}}
}

// positioned is a record with its position.
type positioned struct {
	record.Record
	pos int64
}

// replayedTxn is what the decisions of a transaction need of it.
type replayedTxn struct {
	owner  string
	prompt *perm.PromptFacts
}

// epoch is the time in which one process counted the session: its events have
// one numbering.
type epoch struct {
	owner  string
	from   int64
	events map[int]event // by number
	last   int
}

// event is the beginning of a call or its end.
type event struct {
	decision *positioned // of a beginning
	end      *record.EndedCall
	began    *record.EndedCall // a beginning that only its end tells
}

// read reads the records of the session, or those of some kinds.
func (r *replay) read(ctx context.Context, j journal.Journal, kinds ...record.Kind) error {
	for e, err := range j.Entries(ctx, journal.Query{Session: r.id, Kinds: kinds}) {
		if err != nil {
			return err
		}
		rec, err := record.Unseal(e)
		if e.Erased != "" || errors.Is(err, record.ErrErased) {
			r.lost(e)
			continue
		}
		if err != nil {
			return err
		}
		if err := r.note(positioned{rec, e.Pos}); err != nil {
			return fmt.Errorf("record %d: %w", e.Pos, err)
		}
	}
	return nil
}

// lost notes an entry that was erased or pruned.
func (r *replay) lost(e record.Entry) {
	r.erased = append(r.erased, e.Pos)
	h := e.Header
	if h.Kind == record.KindCommitDecided {
		r.commits = append(r.commits, recordedCommit{positioned{record.Record{Header: h}, e.Pos}, len(r.raised)})
	}
	if !slices.Contains([]record.Kind{record.KindStarted, record.KindHeld, record.KindDenied, record.KindAsked}, h.Kind) {
		return
	}
	if !r.lostCalls[h.Call] {
		r.lostCalls[h.Call] = true
		r.gone = append(r.gone, RecordedDecision{Session: h.Session, Txn: h.Txn, Call: h.Call, Pos: e.Pos, At: h.At})
	}
}

func (r *replay) note(rec positioned) error {
	switch b := rec.Body.(type) {
	case *record.Session:
		r.opened, r.data = true, b.Data
		if len(b.Client) > 0 {
			if err := canon.Decode(b.Client, &r.client); err != nil {
				return err
			}
		}
		return canon.Decode(b.Principal, &r.principal)
	case *record.Begun:
		t := r.txn(rec.Txn)
		if t.owner = b.Owner; b.Prompt != nil {
			t.prompt = &perm.PromptFacts{Client: b.Prompt.Client, ID: b.Prompt.ID}
		}
	case *record.Prompted:
		if t := r.txn(rec.Txn); t.prompt != nil {
			t.prompt.Text = b.Text
		}
	case *record.Adopted:
		r.txn(rec.Txn).owner = b.To
	case *record.Labelled:
		r.raised = append(r.raised, b)
	case *record.CommitDecided, *record.Committed:
		r.commits = append(r.commits, recordedCommit{rec, len(r.raised)})
	case *record.Held, *record.Dropped, *record.Started, *record.Invalid, *record.Denied, *record.Done, *record.Failed, *record.Unknown, *record.Verified, *record.Erased:
		r.counting = append(r.counting, rec)
		r.calls[rec.Call] = append(r.calls[rec.Call], rec)
	}
	return r.place(rec)
}

func (r *replay) txn(id string) *replayedTxn {
	t := r.txns[id]
	if t == nil {
		t = &replayedTxn{}
		r.txns[id] = t
	}
	return t
}

// place puts a decision and the ends that it tells into its epoch.
func (r *replay) place(rec positioned) error {
	order, digest := placed(rec.Body)
	if order == nil {
		return nil
	}
	if order.Tool != nil {
		var facts perm.ToolFacts
		if err := canon.Decode(order.Tool, &facts); err != nil {
			return fmt.Errorf("facts of the tool: %w", err)
		}
		r.tools[digest] = facts
	}
	e := r.epoch(r.txn(rec.Txn).owner, order.From)
	if _, again := e.events[order.Number]; !again { // a held call has its record twice
		e.put(order.Number, event{decision: &rec})
	}
	for i := range order.Ended {
		end := &order.Ended[i]
		e.put(end.Number, event{end: end})
		if _, known := e.events[end.Began]; !known && end.Began > 0 {
			e.put(end.Began, event{began: end})
		}
	}
	for _, n := range order.Before {
		if _, known := e.events[n]; !known {
			e.put(n, event{began: &record.EndedCall{Call: rec.Call, Tool: toolOf(rec.Body)}})
		}
	}
	return nil
}

func (r *replay) epoch(owner string, from int64) *epoch {
	at := slices.IndexFunc(r.epochs, func(e *epoch) bool { return e.owner == owner && e.from == from })
	if at < 0 {
		at = len(r.epochs)
		r.epochs = append(r.epochs, &epoch{owner: owner, from: from, events: map[int]event{}})
	}
	return r.epochs[at]
}

func (e *epoch) put(n int, ev event) {
	e.events[n] = ev
	e.last = max(e.last, n)
}

func toolOf(b record.Body) string {
	switch b := b.(type) {
	case *record.Started:
		return b.Tool.Name
	case *record.Held:
		return b.Tool.Name
	case *record.Denied:
		return b.Tool.Name
	case *record.Asked:
		return b.Tool.Name
	default:
		return ""
	}
}

// decide yields the decisions of the epoch.
func (e *epoch) decide(r *replay, yield func(RecordedDecision, error) bool) bool {
	var now time.Time
	none := &tool.Registry{}
	counters := newSessionCounters(func() time.Time { return now }, func() *tool.Registry { return none })
	for _, rec := range r.counting {
		if rec.pos > e.from {
			break
		}
		now = rec.At
		counters.records(rec.At, lineOf(rec.Record))
	}
	counters.settle()
	complete := len(r.erased) == 0 || r.erased[0] > e.from // the erased ones counted, and nothing says how
	for n := 1; n <= e.last; n++ {
		ev, known := e.events[n]
		switch {
		case !known:
			complete = false
		case ev.end != nil:
			r.end(counters, ev.end)
		case ev.began != nil:
			counters.reserve(r.id, ev.began.Call, record.ToolRef{Name: ev.began.Tool}, ev.began.Counts)
		default:
			d, err := r.decision(counters, *ev.decision, &now)
			if !complete {
				d.Unknown = append(d.Unknown, "session.tools", "session.recent", "session.history")
			}
			if !yield(d, err) || err != nil {
				return false
			}
		}
	}
	return true
}

// end counts the end of a call.
func (r *replay) end(t *sessionCounters, end *record.EndedCall) {
	status := tool.Status(end.Status)
	switch status {
	case "":
		status = tool.StatusDone
	case tool.StatusPending:
		t.release(end.Call, status)
		return
	default:
	}
	for _, rec := range r.calls[end.Call] {
		t.records(rec.At, lineOf(rec.Record))
	}
	t.mu.Lock()
	if c := t.calls[end.Call]; c != nil && end.At != nil { // no record says when
		c.at = *end.At
	}
	t.mu.Unlock()
	t.release(end.Call, status)
}

// decision counts the beginning of a call, and returns the decision about it.
func (r *replay) decision(t *sessionCounters, rec positioned, now *time.Time) (RecordedDecision, error) {
	order, _ := placed(rec.Body)
	c, err := decidedCall(rec.Record)
	if err != nil {
		return RecordedDecision{}, fmt.Errorf("record %d: %w", rec.pos, err)
	}
	if c.facts != nil {
		*now = c.facts.Time
	}
	t.mu.Lock()
	t.declareCounters(order.Counters)
	t.mu.Unlock()
	session := t.reserve(r.id, rec.Call, c.tool, c.sums).Session
	d := RecordedDecision{Session: r.id, Txn: rec.Txn, Call: rec.Call, Pos: rec.pos, At: rec.At, Stage: c.stage, Decision: c.decision, Asked: c.asked, Sums: c.sums}
	if c.facts == nil {
		d.Unknown = []string{"time"}
		return d, nil
	}
	return d, r.request(&d, c, session)
}

// request sets the requests of a decision.
func (r *replay) request(d *RecordedDecision, c recordedCall, session perm.SessionFacts) error {
	facts, known := r.tools[c.tool.Digest]
	if !known {
		d.Unknown = append(d.Unknown, unknownTool()...)
		facts.Name, facts.Version, facts.Digest = c.tool.Name, c.tool.Version, c.tool.Digest
	}
	if string(canon.Sum("remit/input/v1", c.input)) != c.digest {
		d.Unknown = append(d.Unknown, "call.args", "call.script")
	}
	var raised bool
	if session.Labels, session.Requires, raised = r.raisedAt(c.facts.Labels, c.facts.Requires); !raised {
		d.Unknown = append(d.Unknown, "session.labels", "session.requires")
	}
	client := r.client
	session.Client, session.Data = &client, slices.Clone(r.data)
	if !r.opened {
		d.Unknown = append(d.Unknown, "principal", "session.client", "session.data")
	}
	call := perm.CallFacts{ID: d.Call, Args: c.input, EffectClass: c.class, Declared: c.declared, Batch: perm.BatchFacts{Count: 1}, Prompt: r.txn(d.Txn).prompt}
	if c.facts.BatchCount > 0 {
		call.Batch = perm.BatchFacts{Index: c.facts.BatchIndex, Count: c.facts.BatchCount}
	}
	if c.facts.Script != nil {
		if err := canon.Decode(c.facts.Script, &call.Script); err != nil {
			return fmt.Errorf("call %s: script: %w", d.Call, err)
		}
	}
	if c.facts.URLs == nil {
		d.Unknown = append(d.Unknown, "call.urls", "access.user_provided")
	} else if err := canon.Decode(c.facts.URLs, &call.URLs); err != nil {
		return fmt.Errorf("call %s: URLs: %w", d.Call, err)
	}
	if call.ValuesCut = c.facts.ValuesCut; c.facts.Values == nil {
		d.Unknown = append(d.Unknown, "call.values", "call.values_cut")
	} else if err := canon.Decode(c.facts.Values, &call.Values); err != nil {
		return fmt.Errorf("call %s: values: %w", d.Call, err)
	}
	accesses := c.access
	if len(accesses) == 0 {
		one := toolaccess.Call(c.tool.Name)
		accesses = []record.Access{{Action: string(one.Action), Resource: one.Resource}}
	}
	for _, a := range accesses {
		res, err := perm.ParseResource(a.Resource)
		if err != nil {
			return fmt.Errorf("call %s: %w", d.Call, err)
		}
		var provided *bool
		if given, known := c.facts.Provided[res.Facts().Text]; known {
			provided = &given
		}
		d.Requests = append(d.Requests, perm.Request{
			Principal: r.principal, Session: session, Txn: perm.TxnFacts{ID: d.Txn, Calls: c.facts.Calls, Depth: c.facts.Depth},
			Tool: facts, Call: call, Access: perm.AccessFacts{Action: perm.Action(a.Action), Resource: res.Facts(), Method: a.Method, UserProvided: provided},
			Purpose: perm.PurposeRun, Time: c.facts.Time,
		}.Filled())
	}
	return nil
}

// unknownTool lists the fields of a tool whose facts are not on the journal.
func unknownTool() []string {
	return []string{
		"tool.tags", "tool.provenance", "tool.can_verify", "tool.can_revert", "tool.confinement", "tool.coverage", "tool.destination", "tool.grade",
		"tool.confidence", "tool.idempotent", "tool.risk", "tool.approval",
	}
}

// raisedAt returns the first labels and requirements of the session, so many as
// the decision saw.
func (r *replay) raisedAt(labels, requires int) (l, q []string, ok bool) {
	for _, b := range r.raised {
		if len(l) == labels && len(q) == requires {
			break
		}
		add(&l, b.Labels)
		add(&q, b.Requires)
	}
	return l, q, len(l) == labels && len(q) == requires
}
