package agent

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// grantUses numbers the calls that start under a grant and its delegations, in
// every process, in the order of the journal. So if two processes start a call
// at once, the later record sees the earlier one.
type grantUses struct {
	family
	calls map[string]int // by call ID: the calls before it
}

func newGrantUses(j journal.Journal, session string) *grantUses {
	return &grantUses{family: newFamily(j, session, record.KindHeld, record.KindStarted), calls: map[string]int{}}
}

// before implements grant.Config.Before.
func (u *grantUses) before(ctx context.Context, call string) (int, error) {
	lost := func(h record.Header) { u.count(h.Kind, h.Call) }
	if err := u.read(ctx, func(call string, body record.Body) { u.count(record.KindOf(body), call) }, lost); err != nil {
		return 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	n, ok := u.calls[call]
	if !ok {
		return 0, fmt.Errorf("the journal does not show the start of call %s", call)
	}
	return n, nil
}

// count numbers a call at its first record. A held call used the grant when it
// was held. The caller holds the lock.
func (u *grantUses) count(k record.Kind, call string) {
	if k != record.KindHeld && k != record.KindStarted {
		return
	}
	if _, again := u.calls[call]; !again {
		u.calls[call] = len(u.calls)
	}
}
