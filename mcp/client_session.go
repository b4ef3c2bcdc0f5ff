package mcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// clientSession is the server's in-memory state of one session. The journal
// holds all of it except the state of running calls.
type clientSession struct {
	session   *agent.Session
	refs      int               // counted by clientSessions, whose lock guards it
	token     [sha256.Size]byte // digest of the session token; zero: the only client, which needs none
	callSlots chan struct{}     // of running calls

	introduction atomic.Pointer[clientInfo] // of the client that spoke last; nil: none yet

	mu           sync.Mutex // never held across a wait
	openTxns     map[string]bool
	current      currentTxn
	pending      []pendingApproval
	answering    map[string]bool // calls whose answer is being processed
	rawResults   *lru.Cache[string, *rawresult.Slot]
	tasks        int          // number of running tasks
	httpRequests int          // requests over HTTP
	bodyQuota    byteQuota    // of large HTTP bodies
	connections  []legacyConn // of the older revisions, the last used one at the end
}

// pendingApproval is a call of the session that waits for approval.
type pendingApproval struct {
	txn, call, tool, input string // the input is canonical
	alone                  bool   // the transaction belongs to the call and ends with it
}

func (s *Server) newClientSession(ctx context.Context, in *agent.Session) (*clientSession, error) {
	st := &clientSession{session: in, callSlots: make(chan struct{}, s.opts.MaxCallsPerSession), openTxns: map[string]bool{}, answering: map[string]bool{}}
	var err error
	if st.rawResults, err = lru.New[string, *rawresult.Slot](maxRawResults); err != nil {
		return nil, err
	}
	j := s.rt.Journal()
	for e, err := range j.Entries(ctx, journal.Query{Session: in.ID(), Kinds: []record.Kind{record.KindAsked}, Newest: true, Limit: s.opts.MaxTxnsPerSession}) {
		if err != nil {
			return nil, fmt.Errorf("mcp: what session %s waits for: %w", in.ID(), err)
		}
		t, c, err := revert.LoadCall(ctx, j, e.Header.Call)
		if err != nil {
			return nil, fmt.Errorf("mcp: what session %s waits for: %w", in.ID(), err)
		}
		if c.Phase == revert.PhasePending && t.End == "" && !t.Aborting {
			// The transaction of a single call belongs to the call: no client
			// began it, so the server reports its end to none.
			st.openTxns[t.ID] = true
			st.addPending(pendingApproval{txn: t.ID, call: c.Ref.Call, tool: c.Tool.Name, input: string(c.Asked.Input), alone: len(t.Calls) == 1 && !isCurrent(t)})
		}
	}
	if st.current, err = currentOf(ctx, j, in.ID()); st.current.txn != "" && !st.current.gone {
		st.openTxns[st.current.txn] = true
	}
	return st, err
}

// hasOpenTxn reports whether the client session has an open or a current
// transaction.
func (st *clientSession) hasOpenTxn() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.openTxns) > 0 || st.current.txn != ""
}

// The bounds on upstream results of tasks that the journal does not hold:
// number and bytes.
const (
	maxRawResults     = 64
	maxRawResultBytes = 64 << 10
)

func (st *clientSession) storeRawResult(call string, slot *rawresult.Slot) {
	if left := slot.Left(); slot.Refusal() == nil && len(left) > 0 && len(left) <= maxRawResultBytes {
		st.rawResults.Add(call, slot)
	}
}

func (st *clientSession) rawResult(call string) (*rawresult.Slot, bool) {
	return st.rawResults.Get(call)
}

// acquireCallSlot waits until the session can run one more call.
func (st *clientSession) acquireCallSlot(ctx context.Context) (leave func(), err error) {
	select {
	case st.callSlots <- struct{}{}:
		return func() { <-st.callSlots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// bodyQuotaFor returns the quota of the session's large requests.
func (st *clientSession) bodyQuotaFor(share int64) byteQuota {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.bodyQuota.Weighted == nil {
		st.bodyQuota = newByteQuota(share)
	}
	return st.bodyQuota
}

// acquireRequest counts a request, if the session can have one more.
func (st *clientSession) acquireRequest(most int) bool {
	return st.adjustCount(&st.httpRequests, 1, most)
}

func (st *clientSession) releaseRequest() { st.adjustCount(&st.httpRequests, -1, 0) }

func (st *clientSession) adjustCount(of *int, by, most int) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if by > 0 && *of+by > most {
		return false
	}
	*of += by
	return true
}

var errTooMany = errors.New("the session has as many transactions open as it may; commit or revert some")

// begin begins a transaction of the session.
func (st *clientSession) begin(ctx context.Context, most int) (*agent.Txn, error) {
	if !st.hasTxnCapacity(most) {
		return nil, errTooMany
	}
	tx, err := st.session.Begin(ctx)
	if err != nil {
		return nil, err
	}
	st.txnOpened(tx.ID())
	return tx, nil
}

// txnOpened notes that a transaction is open.
func (st *clientSession) txnOpened(txn string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.openTxns[txn] = true
}

// hasTxnCapacity reports whether the session can open one more transaction.
func (st *clientSession) hasTxnCapacity(most int) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.openTxns) < most
}

// txnEnded notes that a transaction has ended.
func (st *clientSession) txnEnded(txn string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.removeTxn(txn)
	if st.current.txn == txn {
		st.current = currentTxn{}
	}
}

func (st *clientSession) removeTxn(txn string) {
	delete(st.openTxns, txn)
	st.pending = slices.DeleteFunc(st.pending, func(w pendingApproval) bool { return w.txn == txn })
}

// pendingCall finds a pending call.
func (st *clientSession) pendingCall(call string) (pendingApproval, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	i := slices.IndexFunc(st.pending, func(w pendingApproval) bool { return w.call == call })
	if i < 0 {
		return pendingApproval{}, false
	}
	return st.pending[i], true
}

// addPending adds a pending call. Adding it again has no effect.
func (st *clientSession) addPending(w pendingApproval) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.pending = slices.DeleteFunc(st.pending, func(other pendingApproval) bool { return other.call == w.call })
	st.pending = append(st.pending, w)
}

// removePending removes a pending call.
func (st *clientSession) removePending(call string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.pending = slices.DeleteFunc(st.pending, func(w pendingApproval) bool { return w.call == call })
}

// matchPending finds the pending call that a request repeats: the same tool and
// input, in the same transaction or in none.
func (st *clientSession) matchPending(t tool.Tool, input []byte, txn string) (pendingApproval, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.pending) == 0 {
		return pendingApproval{}, false
	}
	full, err := t.NormalizeInput(input)
	if err != nil {
		return pendingApproval{}, false
	}
	for _, w := range st.pending {
		if w.tool == t.Name() && w.input == string(full) && (w.txn == txn || (txn == "" && w.alone)) {
			return w, true
		}
	}
	return pendingApproval{}, false
}

// lockAnswer serializes the processing of answers to a call.
func (st *clientSession) lockAnswer(call string) (done func(), ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.answering[call] {
		return nil, false
	}
	st.answering[call] = true
	return func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		delete(st.answering, call)
	}, true
}
