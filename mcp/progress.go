package mcp

import (
	"context"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
)

// apart is how long one report of progress is at least behind the one before it. The last one is told in any case.
const apart = 20 * time.Millisecond

// progressSender tells a client how far its call is. A nil one tells nobody.
type progressSender struct {
	sending sync.Mutex                              // held while a report is written, which whoever comes meanwhile does not wait for
	send    func(p *sdk.ProgressNotificationParams) // nil: nobody wants to hear it now

	mu     sync.Mutex // never held across a wait
	newest *tool.Progress
	told   float64 // the protocol wants each report to be further than the one before it
	at     time.Time
	token  any
}

// newReporter reports to the client of a request that asked for it.
func newReporter(ctx context.Context, req *sdk.CallToolRequest) *progressSender {
	if req.Params.GetProgressToken() == nil {
		return nil
	}
	r := &progressSender{told: -1}
	r.attach(ctx, req)
	return r
}

// attach reports to the client of another request, if that asked for it. A request that is nil asks for nothing.
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
		_ = req.Session.NotifyProgress(ctx, p) // a client that is gone is not told
	}
}

func (r *progressSender) option() agent.CallOption {
	if r == nil {
		return agent.OnCallProgress(nil)
	}
	return agent.OnCallProgress(r.hear)
}

// hear is called on the call's own goroutine.
func (r *progressSender) hear(p tool.Progress) {
	if r.note(p) {
		r.tell()
	}
}

func (r *progressSender) note(p tool.Progress) (now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Done <= r.told {
		return false
	}
	r.newest = &p
	return time.Since(r.at) >= apart
}

func (r *progressSender) tell() {
	if !r.sending.TryLock() {
		return
	}
	defer r.sending.Unlock()
	r.pass()
}

// pass sends the newest report; whoever calls it holds r.sending.
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
	r.newest, r.told, r.at = nil, p.Done, time.Now()
	return &sdk.ProgressNotificationParams{ProgressToken: r.token, Progress: p.Done, Total: p.Total, Message: p.Message}
}

// flush tells what was heard last and not told yet.
func (r *progressSender) flush() {
	if r == nil {
		return
	}
	r.sending.Lock()
	defer r.sending.Unlock()
	r.pass()
}
