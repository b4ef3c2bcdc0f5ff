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

// reports is what a server reports of how far one call is. The client of the call is told by whoever waits for its answer: one that is
// slow holds up nobody else, and what came before the answer is told before it.
type reports struct {
	to func(done, total float64, message string)

	mu      sync.Mutex // never held across a wait
	waiting []*sdk.ProgressNotificationParams
	some    chan struct{} // something waits
}

// add takes a report. It waits for nobody.
func (r *reports) add(p *sdk.ProgressNotificationParams) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == mostReports {
		r.waiting = r.waiting[1:]
	}
	r.waiting = append(r.waiting, p)
	select {
	case r.some <- struct{}{}:
	default: // it is known
	}
}

// come tells when something waits. Of no reports nothing ever does.
func (r *reports) come() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.some
}

// tell tells what waits.
func (r *reports) tell() {
	if r == nil {
		return
	}
	r.mu.Lock()
	all := r.waiting
	r.waiting = nil
	r.mu.Unlock()
	for _, p := range all {
		r.to(p.Progress, p.Total, p.Message)
	}
}

// reporting has what is reported of a call until it ends. What the SDK reads is told at once.
func (s *session) reporting(about callFacts) (r *reports, end func()) {
	if about.report == nil {
		return nil, func() {}
	}
	r = &reports{to: about.report, some: make(chan struct{}, 1)}
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
func (s *session) reports(p *sdk.ProgressNotificationParams) *reports {
	token, ok := p.ProgressToken.(string)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress[token]
}

// report takes what came by way of the SDK.
func (s *session) report(p *sdk.ProgressNotificationParams) {
	if r := s.reports(p); r != nil {
		r.to(p.Progress, p.Total, p.Message)
	}
}

// heardReport takes a message if it is a report.
func (s *session) heardReport(m *jsonrpc.Request) bool {
	if m.Method != methodProgress || m.IsCall() {
		return false
	}
	var p sdk.ProgressNotificationParams
	if json.Unmarshal(m.Params, &p) != nil {
		return false // the SDK says so
	}
	if r := s.reports(&p); r != nil {
		r.add(&p)
	}
	return true
}
