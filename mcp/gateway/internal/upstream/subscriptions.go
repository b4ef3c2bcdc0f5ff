package upstream

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
)

// subscriptions counts the subscribers of each resource of one server.
type subscriptions struct {
	requestLock chan struct{} // serializes requests to the server

	mu  sync.Mutex // never held across a wait
	all map[string]int
}

// add changes the number of a resource's subscribers, and returns the new
// number.
func (w *subscriptions) add(uri string, by int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]int{}
	}
	w.all[uri] += by
	n := w.all[uri]
	if n <= 0 {
		delete(w.all, uri)
	}
	return n
}

func (w *subscriptions) uris() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.all))
}

func (w *subscriptions) has(uri string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[uri] > 0
}

// Subscribe adds a subscriber of a resource. The first one subscribes at the
// server. The caller calls end when it no longer subscribes.
func (u *Upstream) Subscribe(ctx context.Context, uri string) (end func(), err error) {
	s, err := u.Session(ctx)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	if r := s.cs.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Resources == nil || !r.Capabilities.Resources.Subscribe {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "server " + u.Server.Name + " does not support subscriptions"}
	}
	select {
	case u.watches.requestLock <- struct{}{}:
		defer func() { <-u.watches.requestLock }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if u.watches.add(uri, 1) == 1 {
		if err := u.subscribe(ctx, s, uri); err != nil {
			u.watches.add(uri, -1)
			return nil, err
		}
	}
	return sync.OnceFunc(func() { go u.unsubscribe(uri) }), nil
}

// subscribe subscribes at the server, which has a bounded time to respond.
func (u *Upstream) subscribe(ctx context.Context, s *Conn, uri string) error {
	ctx, cancel := context.WithTimeout(ctx, u.Shared.StartTimeout)
	defer cancel()
	ctx, c := wire.WithResponseSlot(ctx, nil)
	kept := func() bool { return true }
	if s.requestsInBand() { // the SDK opens a stream that lasts as long as the connection
		kept = context.AfterFunc(ctx, func() { _ = s.cs.Unsubscribe(context.WithoutCancel(ctx), &sdk.UnsubscribeParams{URI: uri}) })
	}
	err := s.cs.Subscribe(ctx, &sdk.SubscribeParams{URI: uri})
	if _, said := c.Received(); said != nil {
		return said
	}
	if !kept() {
		return context.Cause(ctx)
	}
	return err
}

func (u *Upstream) unsubscribe(uri string) {
	u.watches.requestLock <- struct{}{}
	defer func() { <-u.watches.requestLock }()
	if u.watches.add(uri, -1) > 0 {
		return
	}
	s := u.Current()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), wire.PeerTimeout)
	defer cancel()
	_ = s.cs.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: uri}) // the gateway ignores later updates anyway
}

// resubscribe renews the subscriptions at a restarted server, and reports all
// as changed, as changes meanwhile are unknown.
func (u *Upstream) resubscribe(s *Conn) {
	u.watches.requestLock <- struct{}{}
	defer func() { <-u.watches.requestLock }()
	for _, uri := range u.watches.uris() {
		if err := u.subscribe(context.Background(), s, uri); err != nil {
			u.Shared.Log.Warn("subscribers no longer hear of changes of a resource", "server", u.Server.Name, "uri", uri, "error", err)
			continue
		}
		u.Shared.OnResourceUpdated(uri)
	}
}

// updated takes an update of a server about one of its subscribed resources.
func (u *Upstream) updated(uri string) {
	if u.watches.has(uri) {
		u.Shared.OnResourceUpdated(uri)
	}
}
