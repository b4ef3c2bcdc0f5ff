package mcp

import (
	"context"
	"errors"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// connections bounds the legacy connections that one session keeps over HTTP. A
// new one closes the least recently used one: most clients disconnect without a
// word.
const connections = 16

// legacyConn is a connection of an older revision.
type legacyConn struct {
	c    *sdk.ServerSession
	runs int // running requests
}

// join adds a connection to its session until the connection ends.
func (s *Server) join(st *clientSession, c *sdk.ServerSession) error {
	over, ok := st.addConnection(c, connections)
	if !ok {
		return errors.New("the session has as many connections as it may, and each is at something")
	}
	if over != nil {
		go func() { _ = over.Close() }() // closing can wait for its streams
	}
	gone := s.sessions.stay(st)
	go func() {
		defer gone()
		_ = c.Wait()
		st.removeConnection(c)
	}()
	return nil
}

// uses counts a request of a connection until the caller calls done.
func (s *Server) uses(ctx context.Context, extra *sdk.RequestExtra, c *sdk.ServerSession) (done func()) {
	if extra == nil || extra.TokenInfo == nil {
		return func() {}
	}
	st, err := s.clientSessionOf(ctx, extra)
	if err != nil || !st.touchConnection(c, 1) {
		return func() {} // authentication follows
	}
	return func() { st.touchConnection(c, -1) }
}

// addConnection adds a connection. Over is the connection that it replaces.
func (st *clientSession) addConnection(c *sdk.ServerSession, most int) (over *sdk.ServerSession, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.connections) >= most {
		i := slices.IndexFunc(st.connections, func(j legacyConn) bool { return j.runs == 0 })
		if i < 0 {
			return nil, false
		}
		over = st.connections[i].c
		st.connections = slices.Delete(st.connections, i, i+1)
	}
	st.connections = append(st.connections, legacyConn{c: c})
	return over, true
}

func (st *clientSession) removeConnection(c *sdk.ServerSession) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.connections = slices.DeleteFunc(st.connections, func(j legacyConn) bool { return j.c == c })
}

// touchConnection counts the requests of a connection, and moves it to the end
// as the last used one.
func (st *clientSession) touchConnection(c *sdk.ServerSession, by int) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	i := slices.IndexFunc(st.connections, func(j legacyConn) bool { return j.c == c })
	if i < 0 {
		return false
	}
	j := st.connections[i]
	j.runs += by
	st.connections = append(slices.Delete(st.connections, i, i+1), j)
	return true
}
