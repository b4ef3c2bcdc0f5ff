package gateway

import (
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	methodProgress = "notifications/progress"
	metaProgress   = "progressToken" // where in _meta a request names itself, so that it is told how far it is
	mostReports    = 1000            // of one call that are not told yet; the oldest is dropped for one more
)

// progressRelay is what a server reports of how far one call is. The client of the call is told by whoever waits for its answer: one that is
// slow holds up nobody else, and what came before the answer is told before it.
type progressRelay struct {
	to   func(done, total float64, message string)
	past bool // they do not come by way of the SDK, which would tell them when it comes to it, and maybe behind the answer

	mu      sync.Mutex // never held across a wait
	waiting []*sdk.ProgressNotificationParams
	bytes   int
	some    chan struct{} // something waits
}

// add takes a report. It waits for nobody.
func (r *progressRelay) add(p *sdk.ProgressNotificationParams, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+size > mostHeardBytes {
		return
	}
	if len(r.waiting) == mostReports {
		r.waiting = r.waiting[1:]
	}
	r.waiting, r.bytes = append(r.waiting, p), r.bytes+size
	select {
	case r.some <- struct{}{}:
	default: // it is known
	}
}

// come tells when something waits. Of no reports nothing ever does.
func (r *progressRelay) come() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.some
}

// tell tells what waits.
func (r *progressRelay) tell() {
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

// follow tells what comes until its end is called, which tells the rest.
func (r *progressRelay) follow() (end func()) {
	if r == nil || !r.past {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-r.come():
				r.tell()
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
		r.tell()
	}
}

// reporting has what is reported of a call until it ends.
func (s *upstreamConn) reporting(about callFacts) (r *progressRelay, end func()) {
	if about.report == nil {
		return nil, func() {}
	}
	r = &progressRelay{to: about.report, past: s.tap != nil, some: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress[about.id] = r
	return r, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, about.id)
	}
}

// reports are those that a report belongs to; nil: it is of no call that anybody waits for.
func (s *upstreamConn) reports(p *sdk.ProgressNotificationParams) *progressRelay {
	token, ok := p.ProgressToken.(string)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress[token]
}

// report takes what came by way of the SDK.
func (s *upstreamConn) report(p *sdk.ProgressNotificationParams) {
	if r := s.reports(p); r != nil {
		r.to(p.Progress, p.Total, p.Message)
	}
}

// handleProgress takes a message if it is a report.
func (s *upstreamConn) handleProgress(m *jsonrpc.Request) bool {
	if m.Method != methodProgress || m.IsCall() {
		return false
	}
	var p sdk.ProgressNotificationParams
	if json.Unmarshal(m.Params, &p) != nil {
		return false // the SDK says so
	}
	r := s.reports(&p)
	if r != nil && r.past {
		r.add(&p, len(m.Params))
	}
	return r == nil || r.past
}
