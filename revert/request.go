package revert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Request is a revert or a redo that one node asks of another, because the
// files belong to that one. It carries what Options has and another process can
// be told.
type Request struct {
	Number    int64    `json:"request"`
	Redo      bool     `json:"redo,omitempty"`
	Target    string   `json:"target"` // the transaction or call to revert, or what to redo
	Txn       string   `json:"txn"`    // the transaction that the work concerns
	Resources []string `json:"resources,omitempty"`
	Cascade   bool     `json:"cascade,omitempty"`
	Force     bool     `json:"force,omitempty"`
	NoMerge   bool     `json:"no_merge,omitempty"`
	Overlaps  bool     `json:"overlaps,omitempty"`
	By        string   `json:"by,omitempty"`

	Node  string               `json:"node"` // the node that carries it out
	From  string               `json:"from"` // the node that asked
	State journal.RequestState `json:"state"`
	Asked time.Time            `json:"asked"`
	Taken time.Time            `json:"taken,omitzero"` // the newest attempt
	Ended time.Time            `json:"ended,omitzero"`

	// Report is the report of a request that is done, with one item for each
	// resource. Omitted is the number of items that it has no room for.
	Report  *Report `json:"report,omitempty"`
	Omitted int     `json:"omitted,omitempty"`
	// Why says why a request failed.
	Why string `json:"why,omitempty"`
	// Damage says why a stored request is none that a node asks. Its other
	// fields can be wrong.
	Damage string `json:"damage,omitempty"`
	// ForceHelps says that Force reverts more than was reverted.
	ForceHelps bool `json:"force_helps,omitempty"`

	takers []string
	size   int64
}

var errNoNodes = errors.New("the journal has no other nodes")

// requestBody is what is asked, as the journal stores it.
type requestBody struct {
	Redo      bool     `json:"redo,omitempty"`
	Target    string   `json:"target"`
	Resources []string `json:"resources,omitempty"`
	Cascade   bool     `json:"cascade,omitempty"`
	Force     bool     `json:"force,omitempty"`
	NoMerge   bool     `json:"no_merge,omitempty"`
	Overlaps  bool     `json:"overlaps,omitempty"`
	By        string   `json:"by,omitempty"`
}

// requestAnswer is what the node answers, as the journal stores it.
type requestAnswer struct {
	Report     *Report `json:"report,omitempty"`
	Omitted    int     `json:"omitted,omitempty"`
	Why        string  `json:"why,omitempty"`
	ForceHelps bool    `json:"force_helps,omitempty"`
}

// Options returns the options of the revert that is asked for.
func (q Request) Options() Options {
	return Options{Resources: q.Resources, Cascade: q.Cascade, Force: q.Force, NoMerge: q.NoMerge, Overlaps: q.Overlaps, By: q.By}
}

// Verb returns revert or redo.
func (q Request) Verb() string {
	if q.Redo {
		return "redo"
	}
	return "revert"
}

func (r *Reverter) requests() (journal.Requests, error) {
	if q, ok := r.Journal.(journal.Requests); ok {
		return q, nil
	}
	return nil, errNoNodes
}

// Ask asks node q.Node for a revert or a redo. A repeated call returns the same
// request until its answer was read.
func (r *Reverter) Ask(ctx context.Context, q Request) (Request, error) {
	store, err := r.requests()
	if err != nil {
		return q, err
	}
	if q.Force && q.By == "" {
		return q, errors.New("a forced revert needs By: the record names who overwrote")
	}
	body, err := json.Marshal(requestBody{q.Redo, q.Target, q.Resources, q.Cascade, q.Force, q.NoMerge, q.Overlaps, q.By})
	if err == nil {
		err = r.Host.Point(ctx, "request.ask")
	}
	if err != nil {
		return q, err
	}
	stored, err := store.Ask(ctx, journal.Request{Node: q.Node, Txn: q.Txn, Body: body})
	if err != nil {
		return q, err
	}
	return openRequest(stored)
}

// Asked returns a request as it is now.
func (r *Reverter) Asked(ctx context.Context, number int64) (q Request, err error) {
	store, err := r.requests()
	if err != nil {
		return q, err
	}
	stored, err := store.Request(ctx, number)
	if err != nil {
		return q, err
	}
	return openRequest(stored)
}

// AllAsked lists the requests for this node that have not ended, and those from
// it that have not ended or were not read, oldest first. A damaged one has its
// Damage. A journal that nodes do not share has none.
func (r *Reverter) AllAsked(ctx context.Context) (all []Request, err error) {
	store, err := r.requests()
	if err != nil {
		return nil, nil //nolint:nilerr // there is no other node
	}
	stored, err := store.Requests(ctx)
	for _, s := range stored {
		q, failed := openRequest(s)
		if failed == nil {
			failed = q.checkTarget(ctx, r.Journal)
		}
		if errors.Is(failed, record.ErrDamaged) {
			q.Damage, failed = failed.Error(), nil
		}
		err = errors.Join(err, failed)
		all = append(all, q)
	}
	return all, err
}

// TakeAsked takes the oldest request for this node that no living process works
// on. It returns journal.ErrNotFound if there is none. If a process that died
// had carried the request out, its State and Report are set. If it cannot be
// read, or its transaction is not that of its target, its State and Why are.
// AnswerAsked must follow.
func (r *Reverter) TakeAsked(ctx context.Context) (q Request, err error) {
	store, err := r.requests()
	if err == nil {
		err = r.Host.Point(ctx, "request.take")
	}
	if err != nil {
		return q, err
	}
	stored, err := store.Take(ctx)
	if err != nil {
		return q, err
	}
	if err = r.Host.Point(ctx, "request.taken"); err == nil {
		q, err = openRequest(stored)
	}
	if err == nil {
		err = q.checkTarget(ctx, r.Journal)
	}
	if err == nil {
		err = r.findDone(ctx, &q)
	}
	switch {
	case errors.Is(err, record.ErrDamaged):
		q.State, q.Why = journal.RequestFailed, err.Error()
	case err != nil: // such as an end of ctx, which says nothing about the request
		stored.State = journal.RequestAsked
		return q, errors.Join(err, store.Answer(context.WithoutCancel(ctx), stored))
	}
	return q, nil
}

// AnswerAsked ends a request that this process took, with its State and report.
// With the state RequestAsked, and after an error, it gives the request back. It
// returns journal.ErrNotOwner if another process took it meanwhile. The report
// also has what attempts of dead processes did.
func (r *Reverter) AnswerAsked(ctx context.Context, q Request) (Request, error) {
	store, err := r.requests()
	if err != nil {
		return q, err
	}
	answer, err := r.answerOf(ctx, &q)
	if err != nil {
		q.State = journal.RequestAsked
	}
	return q, errors.Join(err, store.Answer(context.WithoutCancel(ctx), journal.Request{ID: q.Number, State: q.State, Answer: answer}))
}

func (r *Reverter) answerOf(ctx context.Context, q *Request) ([]byte, error) {
	if !q.State.Ended() {
		return nil, nil
	}
	if q.State == journal.RequestDone { // also with what an earlier attempt did
		if err := r.findDone(ctx, q); err != nil {
			return nil, err
		}
	}
	if err := r.Host.Point(ctx, "request.answer"); err != nil {
		return nil, err
	}
	return q.fit(journal.MaxRequestAnswer)
}

// WithdrawAsked ends a request that no process has begun. Otherwise it returns
// journal.ErrNotOwner.
func (r *Reverter) WithdrawAsked(ctx context.Context, number int64) error {
	store, err := r.requests()
	if err != nil {
		return err
	}
	return store.Withdraw(ctx, number)
}

// DiscardAsked deletes a damaged request. For a correct one it returns
// journal.ErrNotOwner.
func (r *Reverter) DiscardAsked(ctx context.Context, number int64) error {
	store, err := r.requests()
	if err != nil {
		return err
	}
	stored, err := store.Request(ctx, number)
	if err != nil {
		return err
	}
	switch err = r.CheckAsked(ctx, stored); {
	case err == nil:
		return fmt.Errorf("request %d is not damaged: %w", number, journal.ErrNotOwner)
	case !errors.Is(err, record.ErrDamaged):
		return err
	}
	return store.Discard(ctx, number)
}

// MarkRead says that the answer of a request was shown: the next equal request
// is another one.
func (r *Reverter) MarkRead(ctx context.Context, number int64) error {
	store, err := r.requests()
	if err != nil {
		return err
	}
	return store.MarkRead(ctx, number)
}

// fit returns the answer in at most a number of bytes. It has no texts of
// conflicts: these are lines of files of this node, which need not be on the
// journal. It leaves out clean items first, then others.
func (q Request) fit(most int) ([]byte, error) {
	a := requestAnswer{q.Report, q.Omitted, clip(q.Why, most/4), q.ForceHelps}
	if a.Report == nil {
		return json.Marshal(a)
	}
	short := *a.Report
	a.Report, short.Items = &short, slices.Clone(short.Items)
	for i := range short.Items {
		short.Items[i].Overlaps = nil
	}
	text, err := json.Marshal(a)
	if err != nil || len(text) <= most {
		return text, err
	}
	slices.SortStableFunc(short.Items, func(x, y ResourceResult) int {
		return cmp.Compare(cleanRank(x), cleanRank(y))
	})
	for {
		if text, err = json.Marshal(a); err != nil || len(text) <= most || len(short.Items) == 0 {
			return text, err
		}
		keep := len(short.Items) * 3 / 4
		a.Omitted, short.Items = a.Omitted+len(short.Items)-keep, short.Items[:keep]
	}
}

func cleanRank(i ResourceResult) int {
	if i.Outcome.Clean() {
		return 1
	}
	return 0
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
