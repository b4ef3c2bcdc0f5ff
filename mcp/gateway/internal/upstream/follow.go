package upstream

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// changed reads the definitions again, once for several notifications.
func (u *Upstream) changed() {
	u.mu.Lock()
	u.again = true
	begin := !u.reading && u.live != nil
	u.reading = u.reading || begin
	u.mu.Unlock()
	if begin {
		go u.follow()
	}
}

// acknowledged reads the definitions again when the server confirms that it
// reports changes. The server reports no earlier change, and the SDK does not
// wait for the confirmation.
func (u *Upstream) acknowledged(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if p, ok := req.GetParams().(*sdk.SubscriptionsAcknowledgedParams); ok && p != nil {
			if n := p.Notifications; n.ToolsListChanged || n.PromptsListChanged || n.ResourcesListChanged {
				u.changed()
			}
		}
		return next(ctx, method, req)
	}
}

func (u *Upstream) follow() {
	for {
		u.mu.Lock()
		s := u.live
		if !u.again || s == nil {
			u.reading = false
			u.mu.Unlock()
			return
		}
		wait := u.changeBackoff.wait(u.Shared.Now(), u.Shared.MaxBackoff)
		u.mu.Unlock()
		s.waitWhileOpen(wait)
		u.mu.Lock()
		u.again = false
		u.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), u.Shared.StartTimeout)
		err := u.list(ctx, s)
		if err == nil {
			err = u.Shared.Changed()
		}
		cancel()
		if err != nil { // its definitions are unknown
			if s.hasEnded() {
				continue // the end of the connection is logged elsewhere
			}
			u.Shared.Log.Warn("what a server declares changed and cannot be read; it is let go", "server", u.Server.Name, "error", err)
			s.close()
		}
	}
}

// changeBackoff limits how often the gateway reads the definitions of a server
// that keeps reporting changes. The delay grows until the server is quiet for a
// while. The gateway serves no change before an operator accepts it.
type changeBackoff struct {
	last  time.Time
	delay time.Duration
}

const shortest = 100 * time.Millisecond

// wait returns the delay before the next read.
func (f *changeBackoff) wait(now time.Time, most time.Duration) time.Duration {
	if f.delay = min(max(2*f.delay, shortest), most); now.Sub(f.last) > most {
		f.delay = 0
	}
	f.last = now.Add(f.delay)
	return f.delay
}

// waitWhileOpen waits, at most while the connection is open.
func (s *Conn) waitWhileOpen(wait time.Duration) {
	if wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.gone:
	}
}
