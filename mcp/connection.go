package mcp

import (
	"context"
	"errors"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// connections is how many of an older revision one session may keep over HTTP. One more ends the one that has been silent for
// longest: most clients go without a word.
const connections = 16

// legacyConn is one of an older revision, which stays.
type legacyConn struct {
	c    *sdk.ServerSession
	runs int // requests
}

// join counts a connection that stays among those of its session, until it ends.
func (s *Server) join(st *clientSession, c *sdk.ServerSession) error {
	over, ok := st.addConnection(c, connections)
	if !ok {
		return errors.New("the session has as many connections as it may, and each is at something")
	}
	if over != nil {
		go func() { _ = over.Close() }() // it may have to wait for its streams
	}
	gone := s.seats.stay(st)
	go func() {
		defer gone()
		_ = c.Wait()
		st.removeConnection(c)
	}()
	return nil
}

// uses notes that a connection is at a request, until done is called.
func (s *Server) uses(ctx context.Context, extra *sdk.RequestExtra, c *sdk.ServerSession) (done func()) {
	if extra == nil || extra.TokenInfo == nil {
		return func() {}
	}
	st, err := s.clientSessionOf(ctx, extra)
	if err != nil || !st.touchConnection(c, 1) {
		return func() {} // who it is will be asked
	}
	return func() { st.touchConnection(c, -1) }
}

// addConnection counts a connection in. Over is the one that it takes the place of.
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

// touchConnection counts the requests of a connection; the one that was used last stands last.
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
