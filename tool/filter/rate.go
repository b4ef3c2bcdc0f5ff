package filter

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Rate bounds how many calls begin within any span of time.
type Rate struct {
	MaxCalls int           // at most; at least 1
	Window   time.Duration // within any span of this length; more than 0
	Shared   bool          // by all sessions of the runtime; else each session has its own
}

// Filter makes the filter "rate". A call that is held counts when it is held.
// Filter returns an error if MaxCalls or Window is not positive.
func (r Rate) Filter() (Filter, error) {
	switch {
	case r.MaxCalls < 1:
		return Filter{}, fmt.Errorf("filter rate: MaxCalls %d: must be at least 1", r.MaxCalls)
	case r.Window <= 0:
		return Filter{}, fmt.Errorf("filter rate: Window %s: must be more than 0", r.Window)
	}
	all := &callTimes{}
	return Filter{Name: "rate", Before: func(_ context.Context, f Call) error {
		if f.Released() {
			return nil
		}
		mine := all
		if !r.Shared {
			v, _ := f.SessionProperties().LoadOrStore(all, &callTimes{}) // all is a key that is this filter's own
			mine, _ = v.(*callTimes)
		}
		if wait, ok := mine.begin(f.Now(), r); !ok {
			return fmt.Errorf("at most %d calls begin within %s; the next one may in %s", r.MaxCalls, r.Window, wait)
		}
		return nil
	}}, nil
}

// callTimes are the times of the newest calls, oldest first.
type callTimes struct {
	mu sync.Mutex // never held across a wait
	at []time.Time
}

// begin counts a call, or says how long none may begin. Where the clock was set back,
// calls of a time to come count as begun now, which is later than they were.
func (b *callTimes) begin(now time.Time, r Rate) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.at) - 1; i >= 0 && b.at[i].After(now); i-- {
		b.at[i] = now
	}
	for len(b.at) > 0 && !b.at[0].After(now.Add(-r.Window)) {
		b.at = b.at[1:]
	}
	if len(b.at) >= r.MaxCalls {
		return b.at[0].Add(r.Window).Sub(now), false
	}
	b.at = append(b.at, now)
	return 0, true
}
