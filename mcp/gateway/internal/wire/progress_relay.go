package wire

import (
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Names and bounds of reports of progress.
const (
	methodProgress   = "notifications/progress"
	KeyProgressToken = "progressToken" // _meta key of the token that requests progress
	mostReports      = 1000            // unsent reports of one call; a new one replaces the oldest
)

// progressRelay forwards the progress of one call. The goroutine that waits for
// the response sends it to the client, so a slow client blocks no other, and
// reports before the response arrive before it.
type progressRelay struct {
	to   func(done, total float64, message string)
	past bool // the reports bypass the SDK, which could deliver them after the response

	mu      sync.Mutex // never held across a wait
	waiting []*sdk.ProgressNotificationParams
	bytes   int
	some    chan struct{} // a report waits
}

// add adds a report. It does not block.
func (r *progressRelay) add(p *sdk.ProgressNotificationParams, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+size > maxQueuedLogBytes {
		return
	}
	if len(r.waiting) == mostReports {
		r.waiting = r.waiting[1:]
	}
	r.waiting, r.bytes = append(r.waiting, p), r.bytes+size
	select {
	case r.some <- struct{}{}:
	default: // already signalled
	}
}

// arrived returns a channel that signals waiting reports. For a nil relay it never
// does.
func (r *progressRelay) arrived() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.some
}

// send sends the waiting reports.
func (r *progressRelay) send() {
	if r == nil {
		return
	}
	r.mu.Lock()
	all := r.waiting
	r.waiting, r.bytes = nil, 0
	r.mu.Unlock()
	for _, p := range all {
		r.to(p.Progress, p.Total, p.Message)
	}
}

// follow sends reports until the caller calls end, which sends the rest.
func (r *progressRelay) follow() (end func()) {
	if r == nil || !r.past {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-r.arrived():
				r.send()
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
		r.send()
	}
}

// progressRelays holds the relays of one connection.
type progressRelays struct {
	mu  sync.Mutex                // never held across a wait
	all map[string]*progressRelay // by progress token
}

// begin collects the progress of a call, by its progress token, until the
// caller calls end. It returns nil if to is nil.
func (a *progressRelays) begin(token string, to func(done, total float64, message string), past bool) (r *progressRelay, end func()) {
	if to == nil {
		return nil, func() {}
	}
	r = &progressRelay{to: to, past: past, some: make(chan struct{}, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[string]*progressRelay{}
	}
	a.all[token] = r
	return r, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.all, token)
	}
}

// of returns the relay of a report's call, or nil if no caller waits for it.
func (a *progressRelays) of(p *sdk.ProgressNotificationParams) *progressRelay {
	token, ok := p.ProgressToken.(string)
	if !ok {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[token]
}

// report takes a report that came through the SDK.
func (a *progressRelays) report(p *sdk.ProgressNotificationParams) {
	if r := a.of(p); r != nil {
		r.to(p.Progress, p.Total, p.Message)
	}
}

// handle takes a message if it is a report.
func (a *progressRelays) handle(m *jsonrpc.Request) bool {
	if m.Method != methodProgress || m.IsCall() {
		return false
	}
	var p sdk.ProgressNotificationParams
	if json.Unmarshal(m.Params, &p) != nil {
		return false // the SDK reports the fault
	}
	r := a.of(&p)
	if r != nil && r.past {
		r.add(&p, len(m.Params))
	}
	return r == nil || r.past
}
