package gateway

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
	turn chan struct{} // serializes requests to the server

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

func (w *subscriptions) uris() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uri := range slices.Sorted(maps.Keys(w.all)) {
		all = append(all, uri)
	}
	return all
}

func (w *subscriptions) has(uri string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[uri] > 0
}

// Subscribe makes the gateway call Options.OnResourceUpdated when a resource
// changes, until the caller calls end. The gateway subscribes once at the
// server for all subscribers.
func (g *Gateway) Subscribe(ctx context.Context, uri string) (end func(), err error) {
	o, ok := g.Resource(uri)
	if !ok {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	s, _ := g.seen.Load().library.of(o.Name)
	if s == nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	return s.u.watch(ctx, uri)
}

func (u *upstream) watch(ctx context.Context, uri string) (end func(), err error) {
	s, err := u.session(ctx)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	if r := s.cs.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Resources == nil || !r.Capabilities.Resources.Subscribe {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "server " + u.cfg.Name + " tells nobody of changes"}
	}
	select {
	case u.watches.turn <- struct{}{}:
		defer func() { <-u.watches.turn }()
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
func (u *upstream) subscribe(ctx context.Context, s *upstreamConn, uri string) error {
	ctx, cancel := context.WithTimeout(ctx, u.g.opts.StartTimeout)
	defer cancel()
	ctx, c := wire.WithResponseSlot(ctx, nil)
	kept := func() bool { return true }
	if s.requestsInBand() { // the SDK opens a stream that lasts as long as the connection
		kept = context.AfterFunc(ctx, func() { _ = s.cs.Unsubscribe(context.WithoutCancel(ctx), &sdk.UnsubscribeParams{URI: uri}) })
	}
	err := s.cs.Subscribe(ctx, &sdk.SubscribeParams{URI: uri})
	if _, said := c.Caught(); said != nil {
		return said
	}
	if !kept() {
		return context.Cause(ctx)
	}
	return err
}

func (u *upstream) unsubscribe(uri string) {
	u.watches.turn <- struct{}{}
	defer func() { <-u.watches.turn }()
	if u.watches.add(uri, -1) > 0 {
		return
	}
	s := u.current()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), wire.Patience)
	defer cancel()
	_ = s.cs.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: uri}) // the gateway ignores later updates anyway
}

// resubscribe renews the subscriptions at a restarted server, and reports all
// as changed, as changes meanwhile are unknown.
func (u *upstream) resubscribe(s *upstreamConn) {
	u.watches.turn <- struct{}{}
	defer func() { <-u.watches.turn }()
	for _, uri := range u.watches.uris() {
		if err := u.subscribe(context.Background(), s, uri); err != nil {
			u.g.log.Warn("nobody is told any more when a resource changes", "server", u.cfg.Name, "uri", uri, "error", err)
			continue
		}
		u.g.news.tell(uri, u.g.opts.OnResourceUpdated)
	}
}

// updated takes an update of a server about one of its subscribed resources.
func (u *upstream) updated(uri string) {
	if u.watches.has(uri) {
		u.g.news.tell(uri, u.g.opts.OnResourceUpdated)
	}
}

// updateQueue holds changed resources on their way to clients. A slow client
// blocks no server, and several changes of one resource become one update.
type updateQueue struct {
	mu      sync.Mutex // never held across a wait
	some    map[string]bool
	telling bool
}

func (n *updateQueue) tell(uri string, to func(uri string)) {
	if to == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.some == nil {
		n.some = map[string]bool{}
	}
	n.some[uri] = true
	if !n.telling {
		n.telling = true
		go n.all(to)
	}
}

func (n *updateQueue) all(to func(uri string)) {
	for {
		n.mu.Lock()
		some := n.some
		n.some = nil
		n.telling = len(some) > 0
		n.mu.Unlock()
		if len(some) == 0 {
			return
		}
		for _, uri := range slices.Sorted(maps.Keys(some)) {
			to(uri)
		}
	}
}
