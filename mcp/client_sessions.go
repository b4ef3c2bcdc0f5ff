package mcp

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// clientSessions are those of clients that prove their session. One that is at something, or has something open, stays: were it made
// anew meanwhile there would be two, of which one does not know what the other has begun. Of the others those that were used
// last are kept, and nothing of theirs is lost with them.
type clientSessions struct {
	mu   sync.Mutex // never held across a wait
	busy map[string]*clientSession
	idle *simplelru.LRU[string, *clientSession]
}

func newSeats(most int) (*clientSessions, error) {
	idle, err := simplelru.NewLRU[string, *clientSession](most, nil)
	return &clientSessions{busy: map[string]*clientSession{}, idle: idle}, err
}

// take finds the seat of a session for somebody who leaves it again.
func (s *clientSessions) take(session string) (*clientSession, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(session)
}

// add takes a seat that is new, or that of the same session of somebody who was faster.
func (s *clientSessions) add(st *clientSession) *clientSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there, ok := s.find(st.session.ID()); ok {
		return there
	}
	st.refs++
	s.busy[st.session.ID()] = st
	return st
}

func (s *clientSessions) find(session string) (*clientSession, bool) {
	st, ok := s.busy[session]
	if !ok {
		if st, ok = s.idle.Get(session); !ok {
			return nil, false
		}
		s.idle.Remove(session)
		s.busy[session] = st
	}
	st.refs++
	return st, true
}

// stay is take for what goes on when the request that took the seat has left it.
func (s *clientSessions) stay(st *clientSession) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.refs++
	return func() { s.leave(st) }
}

func (s *clientSessions) leave(st *clientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := st.session.ID()
	if st.refs--; st.refs == 0 && s.busy[id] == st && !st.hasOpenTxn() {
		delete(s.busy, id)
		s.idle.Add(id, st)
	}
}
