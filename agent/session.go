package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// The conditions of transactions that errors.Is tells apart.
var (
	// ErrTxnEnded: the transaction has committed or was reverted.
	ErrTxnEnded = errors.New("the transaction has ended")
	// ErrPartialRevert: a revert left something behind; its report lists it.
	ErrPartialRevert = errors.New("not everything was taken back")
	// ErrNotReleased: the commit of a transaction has begun, and a call that it was
	// to release did not end done; see Txn.Commit.
	ErrNotReleased = errors.New("a held call was not released")
	// ErrManaged: Update commits and reverts its transaction itself.
	ErrManaged = errors.New("the transaction is managed by Update")
)

// Session is one run of one agent: its principal, its grant, its counts. It is
// safe for concurrent use.
type Session struct {
	rt        *Runtime
	id        string
	principal perm.Principal
	client    perm.ClientFacts
	limits    tool.Limits
	roots     rootsByName
	standing  *sessionState
	token     func() string // nil: not known; a function, so that printing a session shows nothing
}

// ID names the session on the journal.
func (s *Session) ID() string { return s.id }

// Principal returns who asks.
func (s *Session) Principal() perm.Principal { return s.principal.Clone() }

// Begin begins a transaction, which the caller must Commit or Revert. What is
// left open stays open, with its claims, until somebody reverts it.
func (s *Session) Begin(ctx context.Context) (*Txn, error) {
	return s.begin(ctx, false)
}

func (s *Session) begin(ctx context.Context, late bool) (*Txn, error) {
	if err := cmp.Or(s.rt.open(), s.Stands(ctx)); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	rec, err := revert.NewRecorder(s.rt.journal, s.rt.host, s.id).Begin(ctx, host.NewID(s.rt.host, "t_"), late)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	tx := newTxn(s, rec, s.roots)
	s.rt.live.add(tx)
	return tx, nil
}

// Stands returns an error, which is tool.ErrDenied, if the grant of the session has
// ended: it was revoked, or it has expired. The grant of a root session can be
// revoked by another process. Begin and Stands look for that, and calls do not. An
// error that is not tool.ErrDenied says that the journal could not be read.
func (s *Session) Stands(ctx context.Context) error {
	if _, shared := s.rt.journal.(interface{ Dir() string }); shared {
		revoked, why, err := s.rt.register.gone(ctx, s.id)
		if err != nil {
			return err
		}
		if revoked {
			s.standing.grant.Revoke(callstate.NewKey(), why)
		}
	}
	return s.standing.grant.Check(ctx)
}

// Update runs fn in a transaction: committed when fn returns nil, reverted when
// it returns an error or panics, and left open when the error is
// tool.ErrPending: Runtime.ResumeTxn finds it again. It is reverted where a held call
// could not be released, unless another one has been: then it is left open too, with
// ErrNotReleased. The id is returned in each case. The error joins fn's with what
// the revert left behind.
func (s *Session) Update(ctx context.Context, fn func(tx *Txn) error) (id string, err error) {
	tx, err := s.Begin(ctx)
	if err != nil {
		return "", err
	}
	return tx.manage(ctx, fn)
}

// manage runs fn and ends the transaction as it says.
func (tx *Txn) manage(ctx context.Context, fn func(tx *Txn) error) (id string, err error) {
	tx.managed = true
	// Ending the transaction is not given up because the caller went away: what
	// fn returned decides.
	ending := context.WithoutCancel(ctx)
	returned := false
	defer func() {
		if !returned { // a panic goes on after this, and so does runtime.Goexit
			_, _ = tx.revert(ending)
		}
	}()
	err = fn(tx)
	returned = true
	if errors.Is(err, tool.ErrPending) {
		tx.managed = false // open, until somebody has answered
		return tx.ID(), err
	}
	if err != nil {
		_, back := tx.revert(ending)
		return tx.ID(), errors.Join(err, back)
	}
	err = tx.commit(ending)
	if errors.Is(err, ErrNotReleased) && tx.outbox.sent {
		tx.managed = false // what was released cannot be unsent: somebody decides
		return tx.ID(), err
	}
	if err != nil {
		_, back := tx.revert(ending)
		return tx.ID(), errors.Join(err, back)
	}
	return tx.ID(), nil
}

// Revert takes back a transaction of this session, also after it committed. A
// report that is not complete comes with ErrPartialRevert.
func (s *Session) Revert(ctx context.Context, txn string) (revert.Report, error) {
	return s.Undo(ctx, txn, revert.Options{})
}

// Undo takes back a transaction of this session, or a call of one, as how says;
// see Runtime.Undo.
func (s *Session) Undo(ctx context.Context, id string, how revert.Options) (revert.Report, error) {
	if _, err := s.FindTxn(ctx, id); err != nil {
		return revert.Report{}, err
	}
	how.By = cmp.Or(how.By, s.principal.ID)
	return s.rt.Undo(ctx, id, how)
}

// Preview says what Undo would do, and writes nothing; see Runtime.Preview.
func (s *Session) Preview(ctx context.Context, id string, how revert.Options) (revert.Report, error) {
	if _, err := s.FindTxn(ctx, id); err != nil {
		return revert.Report{}, err
	}
	return s.rt.Preview(ctx, id, how)
}

// MayRevert has the policy decide, with purpose revert, whether the session's principal may have a call of this session taken back. A host
// program that lets an agent do so by itself passes it as revert.Options.Permit. Where the policy asks for a person, the approver is asked if
// asking is set; without one, and with any other answer than yes, it is refused.
func (s *Session) MayRevert(ctx context.Context, c revert.Call, asking bool) error {
	if c.Session != s.id {
		return fmt.Errorf("call %s is of another session", c.Ref.Call)
	}
	counts := &txnFacts{session: s, txn: c.Ref.Txn}
	if c.Started != nil {
		counts.seq = c.Started.Sequence
	}
	return tool.PipelineConfig{
		Key: callstate.NewKey(), Host: s.rt.host, Tools: s.tools, Engine: s.rt.engine, Approver: s.rt.approver, Principal: s.principal, Client: s.client,
		Recorder: revert.NewRecorder(s.rt.journal, s.rt.host, s.id).In(c.Ref.Txn), Facts: counts, Memory: approvalStore{s}, Limits: s.limits,
	}.Pipeline().MayRevert(ctx, c, asking)
}

// Redo brings back a transaction of this session that was taken back; see
// Runtime.Redo.
func (s *Session) Redo(ctx context.Context, txn string) (revert.Report, error) {
	if _, err := s.FindTxn(ctx, txn); err != nil {
		return revert.Report{}, err
	}
	return s.rt.Redo(ctx, txn, s.principal.ID)
}

// ResumeTxn finds an open transaction of this session again; see Runtime.ResumeTxn.
func (s *Session) ResumeTxn(ctx context.Context, txn string) (*Txn, error) {
	if tx, ok := s.rt.live.get(txn); ok && tx.s.id == s.id {
		return tx, nil
	}
	if _, err := s.FindTxn(ctx, txn); err != nil {
		return nil, err
	}
	return s.rt.ResumeTxn(ctx, txn)
}

// Outcome returns what a call of this session came to, as the journal tells it: what Invoke answers for a call id that
// was used before.
func (s *Session) Outcome(ctx context.Context, call string) (tool.Outcome, error) {
	if _, err := s.FindTxn(ctx, call); err != nil {
		return tool.Outcome{}, err
	}
	t, c, err := revert.LoadCall(ctx, s.rt.journal, call)
	if err != nil {
		return tool.Outcome{}, err
	}
	return newTxn(s, revert.NewRecorder(s.rt.journal, s.rt.host, s.id).In(t.ID), nil).line.Outcome(c), nil
}

// FindTxn returns the transaction of this session that an id names: its own id, or that of a call of it. What is another
// session's is not read: nobody learns more of it, nor later, than of what never was (journal.ErrNotFound).
func (s *Session) FindTxn(ctx context.Context, id string) (txn string, err error) {
	txn = id
	// That a result raises labels is of the session, and may be the first that the journal has of a call.
	ofTxn := slices.DeleteFunc(kind.All(), func(k kind.Kind) bool { return k == kind.Labelled })
	call, ok, err := s.rt.first(ctx, journal.Query{Call: id, Kinds: ofTxn})
	if err != nil {
		return "", err
	}
	if ok {
		txn = call.Txn
	}
	began, ok, err := s.rt.first(ctx, journal.Query{Txn: txn})
	if err == nil && (!ok || began.Session != s.id) {
		err = s.errForeignTxn(id)
	}
	if err != nil {
		return "", err
	}
	return txn, nil
}

func (s *Session) errForeignTxn(id string) error {
	return fmt.Errorf("transaction or call %s of this session: %w", id, journal.ErrNotFound)
}

// first is whose the first entry is that a query selects; none for a name that is empty, which selects everything.
func (rt *Runtime) first(ctx context.Context, q journal.Query) (h record.Header, ok bool, err error) {
	if q.Txn+q.Call == "" {
		return h, false, nil
	}
	q.Limit = 1
	for e, err := range rt.journal.Entries(ctx, q) {
		return e.Header, err == nil, err
	}
	return h, false, nil
}

func partial(rep revert.Report, err error) error {
	if err == nil && !rep.Complete() {
		return fmt.Errorf("%w: %d of %d", ErrPartialRevert, len(rep.NotUndone()), len(rep.Items))
	}
	return err
}
