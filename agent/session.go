package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// Errors of transactions, for errors.Is.
var (
	// ErrTxnEnded says that the transaction has committed or was reverted, or
	// takes no more calls in this process.
	ErrTxnEnded = errors.New("the transaction has ended")
	// ErrPartialRevert says that a revert is not complete; its report lists
	// what remains.
	ErrPartialRevert = errors.New("not everything was reverted")
	// ErrNotReleased says that the commit of a transaction has begun, and that
	// a held call did not end done; see Txn.Commit.
	ErrNotReleased = errors.New("a held call was not released")
)

// errManaged says that Update commits or reverts the transaction itself.
var errManaged = errors.New("the transaction is managed by Update")

// Session is one run of one agent: its principal, its grant, its counts. A
// Session is safe for concurrent use.
type Session struct {
	rt        *Runtime
	id        string
	principal perm.Principal
	client    perm.ClientFacts
	data      json.RawMessage // never changed; nil: none
	limits    tool.Limits
	roots     rootsByName
	state     *sessionState
	token     func() string // nil: unknown; a function, so that printing a session does not show the token
}

// ID returns the session's ID on the journal.
func (s *Session) ID() string { return s.id }

// Principal returns the principal of the session.
func (s *Session) Principal() perm.Principal { return s.principal.Clone() }

// Begin begins a transaction, which the caller must Commit or Revert. Otherwise
// it stays open, with its claims, until a caller or an operator reverts it.
// While another process has a transaction of the session open, Begin fails with
// revert.ErrBusy.
func (s *Session) Begin(ctx context.Context, opts ...TxnOption) (*Txn, error) {
	var c txnConfig
	for _, o := range opts {
		o(&c)
	}
	if c.prompt == nil {
		return s.begin(ctx, false, nil)
	}
	p, err := c.prompt.recorded()
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	return s.begin(ctx, false, &p)
}

func (s *Session) begin(ctx context.Context, late bool, p *revert.Prompt) (*Txn, error) {
	if err := cmp.Or(s.rt.open(), s.CheckValid(ctx)); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	if late || s.state.moves.busy.Load() { // or attempts in a row would each leave a transaction
		if err := s.catchUp(ctx, ""); err != nil {
			return nil, fmt.Errorf("begin: %w", err)
		}
	}
	id := host.NewID(s.rt.services.Host, "t_")
	rec, err := s.beginRecord(ctx, id, late, p)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	tx := newTxn(s, rec, s.roots, p)
	s.rt.live.add(tx)
	if late { // its beginning is not on the journal yet
		return tx, nil
	}
	if err := s.catchUp(ctx, id); err != nil {
		_, back := tx.revert(context.WithoutCancel(ctx))
		return nil, errors.Join(fmt.Errorf("begin: %w", err), back)
	}
	return tx, nil
}

// CheckValid returns an error, which is tool.ErrDenied, if the grant of the session
// was revoked or has expired. Another process can revoke the grant of a root
// session: Begin and CheckValid check for that, and calls do not. An error that is
// not tool.ErrDenied says that the journal could not be read.
func (s *Session) CheckValid(ctx context.Context) error {
	if isShared(s.rt.journal) {
		revoked, why, err := s.rt.register.gone(ctx, s.id)
		if err != nil {
			return err
		}
		if revoked {
			s.state.grant.Revoke(why)
		}
	}
	return s.state.grant.Check(ctx)
}

// isShared reports whether other processes can use a journal: it has a folder,
// or says so.
func isShared(j journal.Journal) bool {
	_, folder := j.(interface{ Dir() string })
	says, ok := j.(interface{ Shared() bool })
	return folder || ok && says.Shared()
}

// Update runs fn in a transaction. It commits if fn returns nil, and reverts if
// fn returns an error or panics. If the error is tool.ErrPending, it leaves the
// transaction open for Runtime.ResumeTxn. If a held call could not be released,
// Update reverts, unless another call was released: then it leaves the
// transaction open too, with ErrNotReleased. If the policy asks about the commit
// or cannot decide it, Update leaves the transaction open with a *CommitError; a
// denied one is reverted. It returns the transaction's ID in each case. The error joins that of fn with that of the revert, which is
// ErrPartialRevert if something could not be reverted. A call that failed does
// not revert the others: fn decides by what it returns. A panic continues after
// the revert. The end of the transaction does not depend on ctx: if ctx is
// cancelled, the call in flight is, and the transaction is still committed or
// reverted as fn returns. Commit and Revert of tx inside fn do nothing and
// return an error.
func (s *Session) Update(ctx context.Context, fn func(tx *Txn) error) (id string, err error) {
	tx, err := s.Begin(ctx)
	if err != nil {
		return "", err
	}
	return tx.manage(ctx, fn)
}

// manage runs fn and ends the transaction accordingly.
func (tx *Txn) manage(ctx context.Context, fn func(tx *Txn) error) (id string, err error) {
	tx.managed = true
	// The end of the transaction continues if the caller disconnects: the
	// result of fn decides.
	ending := context.WithoutCancel(ctx)
	returned := false
	defer func() {
		if !returned { // a panic continues after this, and so does runtime.Goexit
			_, _ = tx.revert(ending)
		}
	}()
	err = fn(tx)
	returned = true
	if errors.Is(err, tool.ErrPending) {
		tx.managed = false // open until there is an answer
		return tx.ID(), err
	}
	if err != nil {
		_, back := tx.revert(ending)
		return tx.ID(), errors.Join(err, back)
	}
	err = tx.commit(ending)
	if gate := (*CommitError)(nil); errors.As(err, &gate) {
		tx.managed = gate.ended() // otherwise it stays open: nobody refused it
		return tx.ID(), err
	}
	if errors.Is(err, ErrNotReleased) && tx.outbox.sent {
		tx.managed = false // a released call cannot be unsent, so a person decides
		return tx.ID(), err
	}
	if err != nil {
		_, back := tx.revert(ending)
		return tx.ID(), errors.Join(err, back)
	}
	return tx.ID(), nil
}

// Revert reverts a transaction or a call of this session, as how says, also
// after it committed; see Runtime.Revert.
func (s *Session) Revert(ctx context.Context, id string, how revert.Options) (revert.Report, error) {
	if _, err := s.FindTxn(ctx, id); err != nil {
		return revert.Report{}, err
	}
	how.By = cmp.Or(how.By, s.principal.ID)
	return s.rt.Revert(ctx, id, how)
}

// Preview returns what Revert would do, and writes nothing; see Runtime.Preview.
func (s *Session) Preview(ctx context.Context, id string, how revert.Options) (revert.Report, error) {
	if _, err := s.FindTxn(ctx, id); err != nil {
		return revert.Report{}, err
	}
	return s.rt.Preview(ctx, id, how)
}

// MayRevert evaluates the policy, with purpose revert, for a revert of a call
// of this session by the session's principal. A host program that lets an agent
// revert calls itself passes MayRevert as revert.Options.Permit. If the policy
// asks, MayRevert asks the approver if asking is set. Without an approver, or
// with a rejection, it returns an error.
func (s *Session) MayRevert(ctx context.Context, c revert.Call, asking bool) error {
	l, err := s.pipelineFor(ctx, c)
	if err != nil {
		return err
	}
	return l.MayRevert(ctx, c, asking)
}

// MayMerge evaluates the policy, with purpose merge, for a revert of a call that
// keeps what another process changed in a file. A host program passes it as
// revert.Options.PermitMerge, beside MayRevert. If the policy denies or asks,
// MayMerge returns an error, and the file is a conflict.
func (s *Session) MayMerge(ctx context.Context, c revert.Call, resource string) error {
	l, err := s.pipelineFor(ctx, c)
	if err != nil {
		return err
	}
	return l.MayMerge(ctx, c, resource)
}

// pipelineFor returns the pipeline that decides about a revert of a call.
func (s *Session) pipelineFor(ctx context.Context, c revert.Call) (*pipeline.Pipeline, error) {
	if c.Session != s.id {
		return nil, fmt.Errorf("call %s is of another session", c.Ref.Call)
	}
	prompt, err := revert.PromptOf(ctx, s.rt.journal, c.Ref.Txn)
	if err != nil {
		return nil, err
	}
	counts := &txnFacts{session: s, txn: c.Ref.Txn}
	if c.Started != nil {
		counts.seq = c.Started.Sequence
	}
	return pipeline.New(pipeline.Config{
		Services: s.rt.services, Tools: s.tools, Principal: s.principal, Client: s.client, Data: s.data, Prompt: promptFacts(prompt),
		Recorder: revert.NewRecorder(s.rt.journal, s.rt.services.Host, s.id).In(c.Ref.Txn), Facts: counts, Memory: approvalStore{s}, Limits: s.limits,
	}), nil
}

// Redo applies a reverted transaction of this session again; see Runtime.Redo.
// It refuses one whose commit was denied, or waited for an answer: only a
// person redoes it.
func (s *Session) Redo(ctx context.Context, txn string) (revert.Report, error) {
	if _, err := s.FindTxn(ctx, txn); err != nil {
		return revert.Report{}, err
	}
	t, err := revert.Load(ctx, s.rt.journal, txn)
	if err != nil {
		return revert.Report{}, err
	}
	if !t.Permitted() {
		return revert.Report{}, fmt.Errorf("the commit of transaction %s was not permitted, so a person redoes it: %w", txn, tool.ErrDenied)
	}
	line := newTxn(s, revert.NewRecorder(s.rt.journal, s.rt.services.Host, s.id).In(txn), nil, t.Prompt).line
	if t.End != record.KindCommitted && line.DecidesCommits() { // nothing decided about its commit
		return revert.Report{}, fmt.Errorf("transaction %s never committed, and the policy decides commits: call again, or have a person redo it: %w", txn, tool.ErrDenied)
	}
	return s.rt.Redo(ctx, txn, s.principal.ID)
}

// ResumeTxn returns an open transaction of this session; see Runtime.ResumeTxn.
func (s *Session) ResumeTxn(ctx context.Context, txn string) (*Txn, error) {
	if tx, ok := s.rt.live.get(txn); ok && tx.s.id == s.id {
		return tx, nil
	}
	if _, err := s.FindTxn(ctx, txn); err != nil {
		return nil, err
	}
	return s.rt.ResumeTxn(ctx, txn)
}

// Outcome returns the recorded outcome of a call of this session: the same that
// Invoke returns for a repeated call ID.
func (s *Session) Outcome(ctx context.Context, call string) (tool.Outcome, error) {
	if _, err := s.FindTxn(ctx, call); err != nil {
		return tool.Outcome{}, err
	}
	t, c, err := revert.LoadCall(ctx, s.rt.journal, call)
	if err != nil {
		return tool.Outcome{}, err
	}
	return s.outcome(t, c), nil
}

func (s *Session) outcome(t *revert.Txn, c *revert.Call) tool.Outcome {
	return newTxn(s, revert.NewRecorder(s.rt.journal, s.rt.services.Host, s.id).In(t.ID), nil, t.Prompt).line.Outcome(c)
}

// FindTxn returns the transaction of this session that an ID identifies: its
// own ID, or that of one of its calls. It does not read transactions of other
// sessions. For them it returns journal.ErrNotFound, as fast as for an ID that
// does not exist.
func (s *Session) FindTxn(ctx context.Context, id string) (txn string, err error) {
	txn = id
	// Raised labels belong to the session, and can be the first record of a
	// call.
	ofTxn := slices.DeleteFunc(record.Kinds(), func(k record.Kind) bool { return k == record.KindLabelled })
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

// first returns the header of the first entry that a query selects. ok is false
// for an empty name, which would select everything.
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
		return fmt.Errorf("%w: %d of %d", ErrPartialRevert, len(rep.NotReverted()), len(rep.Items))
	}
	return err
}
