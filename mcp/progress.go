package mcp

import (
	"context"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
)

// apart is the shortest time between two progress reports. The last report is
// always sent.
const apart = 20 * time.Millisecond

// progressSender reports the progress of a call to its client. A nil
// progressSender sends nothing.
type progressSender struct {
	sending sync.Mutex                              // held while a report is written; other goroutines do not wait for it
	send    func(p *sdk.ProgressNotificationParams) // nil: the current request wants no reports

	mu           sync.Mutex // never held across a wait
	newest       *tool.Progress
	lastReported float64 // the protocol requires that each report is larger than the last
	at           time.Time
	token        any
}

// newReporter reports to the client of a request that asked for progress.
func newReporter(ctx context.Context, req *sdk.CallToolRequest) *progressSender {
	if req.Params.GetProgressToken() == nil {
		return nil
	}
	r := &progressSender{lastReported: -1}
	r.attach(ctx, req)
	return r
}

// attach reports to the client of another request, if that request asked for
// progress. A nil request asks for none.
func (r *progressSender) attach(ctx context.Context, req *sdk.CallToolRequest) {
	r.sending.Lock()
	defer r.sending.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send = nil
	if req == nil || req.Params.GetProgressToken() == nil {
		return
	}
	r.token = req.Params.GetProgressToken()
	r.send = func(p *sdk.ProgressNotificationParams) {
		_ = req.Session.NotifyProgress(ctx, p) // an error means that the client has left
	}
}

func (r *progressSender) option() agent.CallOption {
	if r == nil {
		return agent.OnCallProgress(nil)
	}
	return agent.OnCallProgress(r.receive)
}

// receive takes a report. The call invokes it on its own goroutine.
func (r *progressSender) receive(p tool.Progress) {
	if r.note(p) {
		r.sendQueued()
	}
}

func (r *progressSender) note(p tool.Progress) (now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Done <= r.lastReported {
		return false
	}
	r.newest = &p
	return time.Since(r.at) >= apart
}

func (r *progressSender) sendQueued() {
	if !r.sending.TryLock() {
		return
	}
	defer r.sending.Unlock()
	r.pass()
}

// pass sends the newest report. The caller holds r.sending.
func (r *progressSender) pass() {
	if r.send == nil {
		return
	}
	if p := r.take(); p != nil {
		r.send(p)
	}
}

func (r *progressSender) take() *sdk.ProgressNotificationParams {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.newest
	if p == nil {
		return nil
	}
	r.newest, r.lastReported, r.at = nil, p.Done, time.Now()
	return &sdk.ProgressNotificationParams{ProgressToken: r.token, Progress: p.Done, Total: p.Total, Message: p.Message}
}

// flush sends the newest report if it is unsent.
func (r *progressSender) flush() {
	if r == nil {
		return
	}
	r.sending.Lock()
	defer r.sending.Unlock()
	r.pass()
}
