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

// connection is one of an older revision, which stays.
type connection struct {
	c    *sdk.ServerSession
	runs int // requests
}

// join counts a connection that stays among those of its session, until it ends.
func (s *Server) join(st *seat, c *sdk.ServerSession) error {
	over, ok := st.join(c, connections)
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
		st.part(c)
	}()
	return nil
}

// uses notes that a connection is at a request, until done is called.
func (s *Server) uses(ctx context.Context, extra *sdk.RequestExtra, c *sdk.ServerSession) (done func()) {
	if extra == nil || extra.TokenInfo == nil {
		return func() {}
	}
	st, err := s.seatOf(ctx, extra)
	if err != nil || !st.uses(c, 1) {
		return func() {} // who it is will be asked
	}
	return func() { st.uses(c, -1) }
}

// join counts a connection in. Over is the one that it takes the place of.
func (st *seat) join(c *sdk.ServerSession, most int) (over *sdk.ServerSession, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.joined) >= most {
		i := slices.IndexFunc(st.joined, func(j connection) bool { return j.runs == 0 })
		if i < 0 {
			return nil, false
		}
		over = st.joined[i].c
		st.joined = slices.Delete(st.joined, i, i+1)
	}
	st.joined = append(st.joined, connection{c: c})
	return over, true
}

func (st *seat) part(c *sdk.ServerSession) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.joined = slices.DeleteFunc(st.joined, func(j connection) bool { return j.c == c })
}

// uses counts the requests of a connection; the one that was used last stands last.
func (st *seat) uses(c *sdk.ServerSession, by int) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	i := slices.IndexFunc(st.joined, func(j connection) bool { return j.c == c })
	if i < 0 {
		return false
	}
	j := st.joined[i]
	j.runs += by
	st.joined = append(slices.Delete(st.joined, i, i+1), j)
	return true
}
