package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// legacyConnState holds what a client of an older revision set for its
// connection.
type legacyConnState struct {
	level   sdk.LoggingLevel // of the log messages; empty: none
	watched map[string]func()
}

// legacyConnStates holds the states of one server, by connection.
type legacyConnStates struct {
	mu  sync.Mutex // never held across a wait
	all map[*sdk.ServerSession]*legacyConnState
}

// mostWatched bounds the upstream resources that one connection subscribes to.
const mostWatched = 1000

// with changes the state of a connection.
func (t *legacyConnStates) with(c *sdk.ServerSession, change func(*legacyConnState)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, there := t.all[c]
	if !there {
		if t.all == nil {
			t.all = map[*sdk.ServerSession]*legacyConnState{}
		}
		one = &legacyConnState{watched: map[string]func(){}}
		t.all[c] = one
		go func() {
			_ = c.Wait()
			t.cut(c)
		}()
	}
	change(one)
}

// cut forgets a connection.
func (t *legacyConnStates) cut(c *sdk.ServerSession) {
	t.mu.Lock()
	one := t.all[c]
	delete(t.all, c)
	t.mu.Unlock()
	if one == nil {
		return
	}
	for _, end := range one.watched {
		end()
	}
}

// level returns the log level that the client of a call wants.
func (c *call) level() sdk.LoggingLevel {
	if c.revision >= stateless {
		text, _ := c.req.Params.Meta[sdk.MetaKeyLogLevel].(string)
		return sdk.LoggingLevel(text)
	}
	t := &c.s.ties
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.all[c.req.Session]; one != nil {
		return one.level
	}
	return ""
}

// watch makes the upstream of a resource report its changes. For a resource of
// the runtime, ResourceChanged alone reports them.
func (s *Server) watch(ctx context.Context, uri string) (end func(), err error) {
	if _, _, own := s.resource(uri); own || s.catalog == nil {
		return func() {}, nil
	}
	return s.catalog.Subscribe(ctx, uri)
}

// subscribes subscribes a connection of an older revision to a resource.
func (s *Server) subscribes(ctx context.Context, req *sdk.SubscribeRequest) error {
	if err := s.maySubscribe(ctx, req.Extra, req.Params.URI); err != nil {
		return err
	}
	full := false
	s.ties.with(req.Session, func(t *legacyConnState) { full = len(t.watched) >= mostWatched })
	if full {
		return fmt.Errorf("mcp: a connection is told of at most %d resources", mostWatched)
	}
	end, err := s.watch(ctx, req.Params.URI)
	if err != nil {
		return err
	}
	var before func()
	s.ties.with(req.Session, func(t *legacyConnState) { before, t.watched[req.Params.URI] = t.watched[req.Params.URI], end })
	if before != nil {
		before()
	}
	return nil
}

func (s *Server) unsubscribes(req *sdk.UnsubscribeRequest) {
	var end func()
	s.ties.with(req.Session, func(t *legacyConnState) {
		end = t.watched[req.Params.URI]
		delete(t.watched, req.Params.URI)
	})
	if end != nil {
		end()
	}
}

// watches subscribes a client of the newest revision to resources while its
// request continues. A resource whose upstream reports no changes is skipped.
func (s *Server) watches(ctx context.Context, req *sdk.SubscriptionsListenRequest) (end func(), err error) {
	var ends []func()
	end = func() {
		for _, one := range ends {
			one()
		}
	}
	if req.Params.Notifications == nil {
		return end, nil
	}
	uris := req.Params.Notifications.ResourceSubscriptions
	if len(uris) > mostWatched {
		return end, fmt.Errorf("mcp: a request is told of at most %d resources", mostWatched)
	}
	if err := s.maySubscribe(ctx, req.Extra, uris...); err != nil {
		return end, err
	}
	for _, uri := range uris {
		one, err := s.watch(ctx, uri)
		var said *jsonrpc.Error
		if errors.As(err, &said) && said.Code == jsonrpc.CodeMethodNotFound {
			continue
		}
		if err != nil {
			end()
			return func() {}, err
		}
		ends = append(ends, one)
	}
	return end, nil
}
