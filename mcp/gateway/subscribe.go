package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Subscribe makes the gateway call Options.OnResourceUpdated when a resource
// changes, until the caller calls end. The gateway subscribes once at the
// server for all subscribers.
func (g *Gateway) Subscribe(ctx context.Context, uri string) (end func(), err error) {
	u := g.mirror.Current().Catalog.Upstream(uri)
	if u == nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	return u.Subscribe(ctx, uri)
}

// updateQueue holds changed resources on their way to clients. A slow client
// blocks no server, and several changes of one resource become one update.
type updateQueue struct {
	mu      sync.Mutex // never held across a wait
	some    map[string]bool
	sending bool
}

func (n *updateQueue) send(uri string, to func(uri string)) {
	if to == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.some == nil {
		n.some = map[string]bool{}
	}
	n.some[uri] = true
	if !n.sending {
		n.sending = true
		go n.all(to)
	}
}

func (n *updateQueue) all(to func(uri string)) {
	for {
		n.mu.Lock()
		some := n.some
		n.some = nil
		n.sending = len(some) > 0
		n.mu.Unlock()
		if len(some) == 0 {
			return
		}
		for _, uri := range slices.Sorted(maps.Keys(some)) {
			to(uri)
		}
	}
}
