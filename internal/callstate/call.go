package callstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Obligations are the conditions that decisions attach to an access.
type Obligations struct {
	Masks    []string // patterns of files that a program does not see
	Requires []string // such as sandbox and preview
}

// And returns the obligations of both.
func (t Obligations) And(o Obligations) Obligations {
	add := func(all, more []string) []string {
		all = slices.Clone(all)
		for _, m := range more {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
		return all
	}
	return Obligations{Masks: add(t.Masks, o.Masks), Requires: add(t.Requires, o.Requires)}
}

// Demands reports whether a decision requires something of the call.
func (t Obligations) Demands(what string) bool { return slices.Contains(t.Requires, what) }

// ProposedChanges are all changes that a finished program proposes.
type ProposedChanges struct {
	Accesses []perm.ResourceAccess
	Facts    []perm.ChangeFacts // in the order of Accesses
	Terms    Obligations        // of the decisions about the call so far
	Preview  func() string      // the diff, for the approver
}

// AuthorizeChangesFunc decides all proposed changes of a program together. It
// returns the same errors as Approve.
type AuthorizeChangesFunc func(ctx context.Context, c *Call, w ProposedChanges) ([]*record.Approved, error)

// Handle is an object that a permit opened and that must be finished with its
// call.
type Handle interface {
	// Prepare records the handle's last changes. After it, no failure may
	// prevent the changes.
	Prepare(ctx context.Context) error
	// Finish makes the handle's effects final.
	Finish(ctx context.Context) error
	// Abort discards effects that are not final. It is called at most once, and
	// not after Finish.
	Abort(ctx context.Context)
}

// Config configures a call.
type Config struct {
	ID            string
	Key           string
	Tool          string
	Class         effect.Class // effect class of this call
	Observed      bool         // its changes are found after they happened, also for a call declared pure
	Settings      []byte       // canonical JSON; nil: the tool has none
	Principal     perm.Principal
	Client        perm.ClientFacts // client of the session
	Recorder      revert.Recorder  // recorder of the call's transaction, or of the revert transaction
	Gate          AuthorizeFunc
	Approve       Approve               // nil: an access that needs an approval is denied
	Clock         *Clock                // paused while the call waits for an approval; nil: no timeout
	Changes       AuthorizeChangesFunc  // nil: no program can change anything
	MaxAccesses   func() perm.Set       // upper bound of the call's accesses; nil: none
	Authorized    []perm.ResourceAccess // exact accesses that were decided before the call
	Terms         Obligations           // obligations of these decisions
	Roots         map[string]disk.Root
	Drivers       []any                                                 // drivers of handles other than files
	Started       *record.Started                                       // not yet written; nil after the write
	Locks         *ResourceLocks                                        // locks of the transaction; nil: no other calls
	ClaimTimeout  time.Duration                                         // how long the call waits for a resource that another transaction claims
	Waits         *WaitGraph                                            // wait graph of the runtime; nil: no waits, and no record of late calls
	Files         FileLimits                                            // limits of file handles; zero fields: their defaults
	CheckGrant    func(context.Context) error                           // why the session's grant is no longer valid; nil: it does not end
	HasRedactions func() bool                                           // whether any value of the call must not be recorded; nil: none
	Environment   func(ctx context.Context) (revert.Environment, error) // environment that reverts changes of the call; nil: none
	JournalFailed func() bool                                           // whether the journal lacks a record of the transaction; nil: it has all
	Progress      func(done, total float64, message string)
}

// FileLimits bounds one operation on files.
type FileLimits struct {
	Bytes   int // of a file that is read or written whole
	Entries int // that one operation changes
}

// Call is the live state of a call. Its methods are safe for concurrent use.
type Call struct {
	cfg    Config
	within *perm.Set // for a part: its accesses; nil: those of the call
	prefix string    // for a part: the prefix of its note keys
	spared bool      // a denial does not end the call
	*sharedState
}

// sharedState is the common state of a call and its parts.
type sharedState struct {
	mu       sync.Mutex // never held across a wait
	writes   *host.Lock // orders the records of this call; nil: see lock
	asks     *host.Lock // serializes the approval requests of the call; nil: see lock
	decided  map[perm.ResourceAccess]bool
	terms    Obligations
	started  *record.Started
	approved []*record.Approved // approvals to write with started
	changes  []effect.Change
	of       []string // for each change, the prefix of its part
	posts    []record.Post
	handles  []partHandle
	commits  bool // one of the handles commits by itself
	refused  *DeniedError
	waits    error // ends the call, which waits for an approval
	inflight int
	closed   bool
	cut      bool // closed while operations were in flight
	still    bool // idle is closed
	idle     chan struct{}

	cells map[string]*ToolState      // states of the call's tools, by name
	lefts int                        // number of states that parts left
	notes map[string]json.RawMessage // recorded notes
}

// New opens a call. Close ends it.
func New(cfg Config) *Call {
	call := &struct { // one allocation: no call is without its state
		c Call
		s sharedState
	}{c: Call{cfg: cfg}, s: sharedState{started: cfg.Started, terms: cfg.Terms}}
	c := &call.c
	c.sharedState = &call.s
	for _, a := range cfg.Authorized {
		c.decide(a)
	}
	return c
}

// decide remembers an access that was decided.
func (s *sharedState) decide(a perm.ResourceAccess) {
	if s.decided == nil {
		s.decided = map[perm.ResourceAccess]bool{}
	}
	s.decided[a] = true
}

// lock makes the lock at a place when it is needed first: most calls write and
// ask nothing by themselves.
func (c *Call) lock(at **host.Lock, id string) *host.Lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *at == nil {
		*at = host.NewLock(c.cfg.Recorder.Host(), id)
	}
	return *at
}

func (c *Call) writeLock() *host.Lock { return c.lock(&c.writes, "line.writes") }

func (c *Call) askLock() *host.Lock { return c.lock(&c.asks, "line.asks") }

// wait returns the channel that is closed when no operation is in flight after
// the end. The caller holds the lock.
func (s *sharedState) wait() chan struct{} {
	if s.idle == nil {
		s.idle = make(chan struct{})
		if s.still {
			close(s.idle)
		}
	}
	return s.idle
}

// Config returns the configuration of the call.
func (c *Call) Config() Config { return c.cfg }

// Op is one operation in flight. Its call does not end before it does.
type Op struct {
	call *Call
	over bool     // under call.mu
	then []func() // run at its end; under call.mu
}

// Call returns the operation's call, or nil after the operation has ended.
func (o *Op) Call() *Call {
	if o == nil {
		return nil
	}
	o.call.mu.Lock()
	defer o.call.mu.Unlock()
	if o.over || o.call.cut {
		return nil
	}
	return o.call
}

// Leave ends the operation. Only the first call has an effect.
func (o *Op) Leave() {
	if o == nil {
		return
	}
	o.call.mu.Lock()
	then := o.then
	o.then = nil
	if !o.over {
		o.over = true
		o.call.leave()
	}
	o.call.mu.Unlock()
	for i := len(then) - 1; i >= 0; i-- {
		then[i]()
	}
}

// Then runs f when the operation ends.
func (o *Op) Then(f func()) {
	o.call.mu.Lock()
	defer o.call.mu.Unlock()
	o.then = append(o.then, f)
}

// Hold begins an operation inside another one, which may end before it.
func (o *Op) Hold() (c *Call, leave func(), err error) {
	if o == nil {
		return nil, nil, ErrClosed
	}
	o.call.mu.Lock()
	defer o.call.mu.Unlock()
	if o.over || o.call.cut {
		return nil, nil, ErrClosed
	}
	o.call.inflight++
	return o.call, (&Op{call: o.call}).Leave, nil
}

// Enter begins an operation, which must Leave. It fails with ErrClosed after
// the call has ended.
func (c *Call) Enter(ctx context.Context) (*Op, error) {
	if c == nil {
		return nil, ErrClosed
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	c.inflight++
	return &Op{call: c}, nil
}

// leave ends an operation; the caller holds the lock.
func (c *Call) leave() {
	c.inflight--
	c.rest()
}

// rest notifies waiters that no operation is in flight. The caller holds the
// lock.
func (c *Call) rest() {
	if c.closed && c.inflight == 0 && !c.still {
		c.still = true
		if c.idle != nil {
			close(c.idle)
		}
		c.cfg.Waits.over(c.cfg.ID)
	}
}

// Reenter begins an operation of a handle that is being finished, when the
// tool's own code can no longer begin one. It must Leave.
func (c *Call) Reenter() (*Op, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, ErrClosed
	}
	c.inflight++
	return &Op{call: c}, nil
}

// CloseIdle refuses new operations. It reports whether none is in flight. If
// not, the caller must Close.
func (c *Call) CloseIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cut {
		c.closed = true
		c.rest()
	}
	return c.still
}

// Close refuses new operations and waits for those in flight, because before
// their end the outcome of the call is unknown. If ctx ends first, Close cuts
// them off. The error then states that their effects are unknown.
func (c *Call) Close(ctx context.Context) error {
	if c.CloseIdle() {
		return nil
	}
	c.mu.Lock()
	if c.cut { // already waited
		c.mu.Unlock()
		return c.settled()
	}
	idle := c.wait()
	c.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	if c.still { // in time, in either case of select
		c.mu.Unlock()
		return nil
	}
	c.cut = true
	c.cfg.Waits.late(c.cfg.Recorder.Host(), c.cfg.Recorder.Txn(), c.cfg.ID)
	c.mu.Unlock()
	// A record that is being written now precedes the call's end. No record may
	// follow it.
	writes := c.writeLock()
	if err := writes.Lock(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	writes.Unlock()
	return ErrInFlight
}

// settled returns ErrInFlight while an operation is in flight.
func (c *Call) settled() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.still {
		return nil
	}
	return ErrInFlight
}

// order locks the call's records for a write, unless the call was cut off or
// waits.
func (c *Call) order(ctx context.Context) error {
	if err := c.writeLock().Lock(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.waits; c.cut || err != nil {
		c.writes.Unlock()
		if err == nil {
			err = ErrClosed
		}
		return err
	}
	return nil
}

// Terms returns the obligations of the decisions about the call so far.
func (c *Call) Terms() Obligations {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.terms.And(Obligations{})
}

// held refuses accesses through a grant that has ended, even if they were
// decided before.
func (c *Call) held(ctx context.Context, a perm.ResourceAccess) error {
	if c.cfg.CheckGrant == nil {
		return nil
	}
	why := c.cfg.CheckGrant(ctx)
	if why == nil {
		return nil
	}
	err := &DeniedError{Access: a, Stage: "grant", Why: why.Error()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark(err, a)
	return err
}

// mark keeps the first denial of an access that changes a resource, or of one
// whose approval request got no answer. A result without it is incomplete.
// Client requests of a server do not count, because they are not part of a
// result. The caller holds the lock.
func (c *Call) mark(err error, a perm.ResourceAccess) {
	var denied *DeniedError
	if !c.spared && asDenied(err, &denied) && (denied.Unanswered && a.Action != perm.AskClient || !a.Action.Observes()) && c.refused == nil {
		c.refused = denied
	}
}

// Refused returns the denial that ends the call, for any result of its tool.
func (c *Call) Refused() *DeniedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// Root returns the folder of a named root.
func (c *Call) Root(name string) (disk.Root, bool) {
	r, ok := c.cfg.Roots[name]
	return r, ok
}

var errJournalIncomplete = errors.New("the journal does not hold all that the transaction did, so it changes nothing more and can only be reverted")

// Intend makes changes durable, sets their numbers, and claims their resources
// for the transaction. Their effects may begin only after it returned nil. It
// also writes the records of the call's start that are not yet written.
func (c *Call) Intend(ctx context.Context, changes []effect.Change, blobs []journal.Blob) ([]effect.Change, error) {
	for _, ch := range changes[:min(1, len(changes))] {
		write := perm.Access(perm.Write, ch.Resource)
		err := c.held(ctx, write)
		if !c.cfg.Observed { // an observed change has happened and must be recorded
			err = errors.Join(err, c.checkPure(write))
		}
		if err != nil {
			return nil, err
		}
	}
	if err := c.order(ctx); err != nil {
		return nil, err
	}
	defer c.writes.Unlock()
	// The outcome of a call without an end on the journal follows from the
	// versions that it left: a change on top would hide them. It has ended,
	// since this call holds the resource.
	//mutant:check
	if c.cfg.JournalFailed != nil && c.cfg.JournalFailed() {
		return nil, errJournalIncomplete
	}
	//mutant:barrier
	w := revert.Write{Blobs: blobs, Durable: true, Records: c.Start()}
	next := len(c.Changes())
	out := make([]effect.Change, 0, len(changes))
	for i, ch := range changes {
		ch.N = next + i + 1
		out = append(out, ch)
		w.Records = append(w.Records, revert.CallRecord{Call: c.cfg.ID, Body: &record.Changed{Change: ch}})
		//mutant:lease
		w.Claims = append(w.Claims, ch.Resource)
	}
	if err := c.cfg.Recorder.Write(ctx, w); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started, c.approved = nil, nil
	c.changes = append(c.changes, out...)
	for range out {
		c.of = append(c.of, c.prefix)
	}
	return out, nil
}

// Claim claims a resource for the transaction without a change, because the
// call relies on the version that it found. It needs no barrier: a claim must
// only be as durable as the records before it.
func (c *Call) Claim(ctx context.Context, resource string) error {
	if err := c.held(ctx, perm.Access(perm.Write, resource)); err != nil {
		return err
	}
	return c.write(ctx, revert.Write{Claims: []string{resource}})
}

// Note records a value for the revert of the call, durable when it returns.
func (c *Call) Note(ctx context.Context, key string, value any) error {
	raw, err := canon.Marshal(value)
	if err != nil {
		return fmt.Errorf("note %q: %w", key, err)
	}
	key = c.prefix + key
	if known := SecretsOf(c.cfg.Drivers); !known.None() && known.Scrub(key+"\n"+string(raw)) != key+"\n"+string(raw) {
		return errors.New("a note would hold the value of a secret: note its name instead")
	}
	line := revert.CallRecord{Call: c.cfg.ID, Body: &record.RevertNote{Key: key, Value: json.RawMessage(raw)}}
	//mutant:barrier
	if err := c.write(ctx, revert.Write{Records: []revert.CallRecord{line}, Durable: true}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.notes == nil {
		c.notes = map[string]json.RawMessage{}
	}
	c.notes[key] = raw
	return nil
}

// Question records an approval request of a running call, durable when it
// returns.
func (c *Call) Question(ctx context.Context, asked *record.Asked) error {
	//mutant:barrier
	return c.write(ctx, revert.Write{Records: []revert.CallRecord{{Call: c.cfg.ID, Body: asked}}, Durable: true})
}

// Keep makes the start of the call durable. Otherwise it is written with the
// first change or the end.
func (c *Call) Keep(ctx context.Context) error {
	//mutant:barrier
	return c.write(ctx, revert.Write{Durable: true})
}

// write appends to the call's records, after its start.
func (c *Call) write(ctx context.Context, w revert.Write) error {
	if err := c.order(ctx); err != nil {
		return err
	}
	defer c.writes.Unlock()
	w.Records = append(c.Start(), w.Records...)
	if err := c.cfg.Recorder.Write(ctx, w); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started, c.approved = nil, nil
	return nil
}

// SetPostVersion sets the version that a change left, if it was not known before.
func (c *Call) SetPostVersion(n int, post effect.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = append(c.posts, record.Post{N: n, Post: post})
	if n >= 1 && n <= len(c.changes) {
		c.changes[n-1].Post = post
	}
}

// Changes returns a copy of the changes that were recorded so far.
func (c *Call) Changes() []effect.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]effect.Change{}, c.changes...)
}

// Posts returns the versions that were set after the changes.
func (c *Call) Posts() []record.Post {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]record.Post{}, c.posts...)
}

// Start returns the first records of the call while no barrier has made them
// durable. The record that ends the call follows them. It returns none after
// they are written.
func (c *Call) Start() (lines []revert.CallRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started == nil {
		return nil
	}
	lines = make([]revert.CallRecord, 0, 2+len(c.approved)) // with room for the end of the call
	lines = append(lines, revert.CallRecord{Call: c.cfg.ID, Body: c.started})
	for _, a := range c.approved {
		lines = append(lines, revert.CallRecord{Call: c.cfg.ID, Body: a})
	}
	return lines
}

// Progress reports the progress of the call. It is dropped without a receiver,
// and after the call has ended.
func (c *Call) Progress(done, total float64, message string) {
	c.mu.Lock()
	over := c.closed
	c.mu.Unlock()
	if c.cfg.Progress != nil && !over {
		c.cfg.Progress(done, total, message)
	}
}
