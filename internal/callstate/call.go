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

// Obligations are what decisions attach to the right that they give.
type Obligations struct {
	Masks    []string // file patterns that a program does not see
	Requires []string // such as sandbox and preview
}

// And returns the terms of both.
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

// ProposedChanges is all that a program that has run wants to change.
type ProposedChanges struct {
	Accesses []perm.ResourceAccess
	Facts    []perm.ChangeFacts // in the order of Accesses
	Terms    Obligations        // of what was decided about the call so far
	Preview  func() string      // the difference, for whoever is asked
}

// AuthorizeChangesFunc decides what a program wants to change, all of it at once. It returns as
// Approve does.
type AuthorizeChangesFunc func(ctx context.Context, c *Call, w ProposedChanges) ([]*record.Approved, error)

// Handle is what a permit opened and what must be finished with its call.
type Handle interface {
	// Prepare records the handle's last changes; nothing may fail after it
	// that would leave the changes undone.
	Prepare(ctx context.Context) error
	// Finish makes the handle's effects final.
	Finish(ctx context.Context) error
	// Abort drops what is not final. It is called at most once, and not after
	// Finish.
	Abort(ctx context.Context)
}

// Config is what a call is made of.
type Config struct {
	ID            string
	Key           string
	Tool          string
	Class         effect.Class // of this call
	Observed      bool         // its changes are found once they have happened, also those of a call that is said to be pure
	Settings      []byte       // canonical; nil: the tool has none
	Principal     perm.Principal
	Client        perm.ClientFacts // who the session is shown to
	Recorder      revert.Recorder  // of the call's transaction, or for an undo of the one that takes it back
	Gate          AuthorizeFunc
	Approve       Approve               // nil: what the policy asks about is refused
	Clock         *Clock                // which stands still while the call waits for a person; nil: none does
	Changes       AuthorizeChangesFunc  // nil: no program can change anything
	MaxAccesses   func() perm.Set       // what the call can be granted at most; nil: nothing
	Authorized    []perm.ResourceAccess // exact accesses that were decided before the call
	Terms         Obligations           // of those decisions
	Roots         map[string]disk.Root
	Drivers       []any                                                 // what handles other than files work with
	Started       *record.Started                                       // not yet written; nil when it is
	Turns         *ResourceLocks                                        // of the transaction; nil: nobody else is there
	ClaimTimeout  time.Duration                                         // how long a resource that another transaction holds is waited for
	Waits         *WaitGraph                                            // of the runtime; nil: nobody waits, and nobody knows of stragglers
	Files         FileLimits                                            // of handles on files; zero fields: their defaults
	CheckGrant    func(context.Context) error                           // why the session's grant does not stand any more; nil: it does not end
	HasRedactions func() bool                                           // whether something of the call is to be written down nowhere; nil: nothing is
	Environment   func(ctx context.Context) (revert.Environment, error) // what takes changes of the call back; nil: nothing does
	JournalFailed func() bool                                           // whether the journal lacks a record of the transaction; nil: it has all
	Progress      func(done, total float64, message string)
}

// FileLimits bound what one operation on files takes on.
type FileLimits struct {
	Bytes   int // of a file that is read or written whole
	Entries int // that one operation changes
}

// Call is the live state. Its methods are safe for concurrent use.
type Call struct {
	cfg    Config
	within *perm.Set // of a part: what it may touch; nil: what the call may
	prefix string    // of a part: before the keys of its notes
	*sharedState
}

// sharedState is what a call and its parts have in common.
type sharedState struct {
	writes *host.Lock // orders the records of this call
	asks   *host.Lock // a person answers one question of the call at a time

	mu       sync.Mutex // never held across a wait
	decided  map[perm.ResourceAccess]bool
	terms    Obligations
	started  *record.Started
	approved []*record.Approved // what goes with it
	changes  []effect.Change
	of       []string // the prefix of the part that made each of changes
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

	cells map[string]*ToolState      // states that its tools hold, by the name they are kept under
	lefts int                        // how often a part left one
	notes map[string]json.RawMessage // what was noted
}

// New opens a call. Close ends it.
func New(cfg Config) *Call {
	c := &Call{cfg: cfg, sharedState: &sharedState{started: cfg.Started, terms: cfg.Terms, decided: map[perm.ResourceAccess]bool{}, idle: make(chan struct{}), notes: map[string]json.RawMessage{}}}
	c.writes, c.asks = host.NewLock(cfg.Recorder.Host(), "line.writes"), host.NewLock(cfg.Recorder.Host(), "line.asks")
	for _, a := range cfg.Authorized {
		c.decided[a] = true
	}
	return c
}

// Config returns what the call was made of.
func (c *Call) Config() Config { return c.cfg }

// Op is one operation in flight. While it is, its call does not end.
type Op struct {
	call *Call
	over bool     // under call.mu
	then []func() // run when it is over; under call.mu
}

// Call returns the operation's call, nil once the operation is over.
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

// Leave ends the operation; only the first time counts.
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

// Then runs f when the operation is over.
func (o *Op) Then(f func()) {
	o.call.mu.Lock()
	defer o.call.mu.Unlock()
	o.then = append(o.then, f)
}

// Hold begins an operation inside another one, which may then end before it.
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

// Enter begins an operation, which must Leave. It fails with ErrClosed once the
// call has ended.
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

// leave is called with the lock held.
func (c *Call) leave() {
	c.inflight--
	c.rest()
}

// rest tells whoever waits that nothing is in flight any more. It is called with
// the lock held.
func (c *Call) rest() {
	if c.closed && c.inflight == 0 && !c.still {
		c.still = true
		close(c.idle)
		c.cfg.Waits.over(c.cfg.ID)
	}
}

// Reenter begins an operation of a handle that is being finished, when the tool's
// own code can begin none any more. It must Leave.
func (c *Call) Reenter() (*Op, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, ErrClosed
	}
	c.inflight++
	return &Op{call: c}, nil
}

// Close refuses new operations and waits for those in flight: before they are
// over nobody can say what the call did. When ctx ends first they are cut off,
// and the error says that what they still do cannot be told.
func (c *Call) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.cut { // waited for already
		c.mu.Unlock()
		return c.settled()
	}
	c.closed = true
	c.rest()
	c.mu.Unlock()
	select {
	case <-c.idle:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	if c.still { // in time, whichever case select picked
		c.mu.Unlock()
		return nil
	}
	c.cut = true
	c.cfg.Waits.late(c.cfg.Recorder.Host(), c.cfg.Recorder.Txn(), c.cfg.ID)
	c.mu.Unlock()
	// A record that is being written now still stands before the call's end;
	// none may follow it.
	if err := c.writes.Lock(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	c.writes.Unlock()
	return ErrInFlight
}

// settled reports ErrInFlight while an operation is in flight.
func (c *Call) settled() error {
	select {
	case <-c.idle:
		return nil
	default:
		return ErrInFlight
	}
}

// order takes the turn to write a record of the call, unless it was cut off, or waits.
func (c *Call) order(ctx context.Context) error {
	if err := c.writes.Lock(ctx); err != nil {
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

// Terms returns what the decisions about the call demand so far.
func (c *Call) Terms() Obligations {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.terms.And(Obligations{})
}

// held refuses what a call does through a grant that has ended, also where it was
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

// mark keeps the first refusal of an access that would have changed something, or
// that a person was to approve who did not answer: a result without it would say less
// than it seems to. What a server asks its client is no part of a result. It is called
// with the lock.
func (c *Call) mark(err error, a perm.ResourceAccess) {
	var denied *DeniedError
	if asDenied(err, &denied) && (denied.Unanswered && a.Action != perm.AskClient || !a.Action.Observes()) && c.refused == nil {
		c.refused = denied
	}
}

// Refused returns the refusal that ends the call, whatever its tool made of it.
func (c *Call) Refused() *DeniedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// Root returns the folder that a root's name stands for.
func (c *Call) Root(name string) (disk.Root, bool) {
	r, ok := c.cfg.Roots[name]
	return r, ok
}

var errBroken = errors.New("the journal does not hold all that the transaction did, so it changes nothing more and can only be reverted")

// Intend makes changes durable, with their numbers filled in, and claims their
// resources for the transaction. Only after it returned nil may their effects
// begin. What was not yet written of the call's start goes with them.
func (c *Call) Intend(ctx context.Context, changes []effect.Change, blobs []journal.Blob) ([]effect.Change, error) {
	for _, ch := range changes[:min(1, len(changes))] {
		write := perm.Access(perm.Write, ch.Resource)
		err := c.held(ctx, write)
		if !c.cfg.Observed { // else it has happened, and would go unrecorded
			err = errors.Join(err, c.effectless(write))
		}
		if err != nil {
			return nil, err
		}
	}
	if err := c.order(ctx); err != nil {
		return nil, err
	}
	defer c.writes.Unlock()
	// What a call came to whose end is not on the journal is told from the versions that it
	// left: a change on top would hide them. It has ended, since the resource is this call's.
	//mutant:check
	if c.cfg.JournalFailed != nil && c.cfg.JournalFailed() {
		return nil, errBroken
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

// Claim holds a resource for the transaction without a change of it: what the
// call found there is what it relies on. No barrier: a claim only has to outlive
// the process together with what was recorded before it.
func (c *Call) Claim(ctx context.Context, resource string) error {
	if err := c.held(ctx, perm.Access(perm.Write, resource)); err != nil {
		return err
	}
	return c.write(ctx, revert.Write{Claims: []string{resource}})
}

// Note records something for the call's own undo, durable when it returns.
func (c *Call) Note(ctx context.Context, key string, value any) error {
	raw, err := canon.Marshal(value)
	if err != nil {
		return fmt.Errorf("note %q: %w", key, err)
	}
	key = c.prefix + key
	if known := SecretsOf(c.cfg.Drivers); !known.None() && known.Scrub(key+"\n"+string(raw)) != key+"\n"+string(raw) {
		return errors.New("a note would hold the value of a secret: note its name instead")
	}
	line := revert.CallRecord{Call: c.cfg.ID, Body: &record.Noted{Key: key, Value: json.RawMessage(raw)}}
	//mutant:barrier
	if err := c.write(ctx, revert.Write{Records: []revert.CallRecord{line}, Durable: true}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes[key] = raw
	return nil
}

// Question puts on record what a running call asks a person, durable when it returns.
func (c *Call) Question(ctx context.Context, asked *record.Asked) error {
	//mutant:barrier
	return c.write(ctx, revert.Write{Records: []revert.CallRecord{{Call: c.cfg.ID, Body: asked}}, Durable: true})
}

// Keep makes the start of the call durable, which else goes with its first change or its end.
func (c *Call) Keep(ctx context.Context) error {
	//mutant:barrier
	return c.write(ctx, revert.Write{Durable: true})
}

// write appends to the call's records, behind its start.
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

// Landed notes the version that a change left where it was not known before.
func (c *Call) Landed(n int, post effect.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = append(c.posts, record.Post{N: n, Post: post})
	if n >= 1 && n <= len(c.changes) {
		c.changes[n-1].Post = post
	}
}

// Changes and Posts return copies of what was recorded so far.
func (c *Call) Changes() []effect.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]effect.Change{}, c.changes...)
}

// Posts returns the versions that only the world could tell.
func (c *Call) Posts() []record.Post {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]record.Post{}, c.posts...)
}

// Start returns the records with which the call begins while no barrier has made them
// durable, for the record that ends the call to follow; none once they are written.
func (c *Call) Start() (lines []revert.CallRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started == nil {
		return nil
	}
	lines = append(lines, revert.CallRecord{Call: c.cfg.ID, Body: c.started})
	for _, a := range c.approved {
		lines = append(lines, revert.CallRecord{Call: c.cfg.ID, Body: a})
	}
	return lines
}

// Progress reports how far the call is. It is dropped where nobody listens, and
// once the call has ended: what is late tells nobody anything.
func (c *Call) Progress(done, total float64, message string) {
	c.mu.Lock()
	over := c.closed
	c.mu.Unlock()
	if c.cfg.Progress != nil && !over {
		c.cfg.Progress(done, total, message)
	}
}
