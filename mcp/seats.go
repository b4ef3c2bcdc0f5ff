package mcp

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// seats are those of clients that prove their session. One that is at something, or has something open, stays: were it made
// anew meanwhile there would be two, of which one does not know what the other has begun. Of the others those that were used
// last are kept, and nothing of theirs is lost with them.
type seats struct {
	mu   sync.Mutex // never held across a wait
	busy map[string]*seat
	idle *simplelru.LRU[string, *seat]
}

func newSeats(most int) (*seats, error) {
	idle, err := simplelru.NewLRU[string, *seat](most, nil)
	return &seats{busy: map[string]*seat{}, idle: idle}, err
}

// take finds the seat of a session for somebody who leaves it again.
func (s *seats) take(session string) (*seat, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(session)
}

// add takes a seat that is new, or that of the same session of somebody who was faster.
func (s *seats) add(st *seat) *seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there, ok := s.find(st.in.ID()); ok {
		return there
	}
	st.users++
	s.busy[st.in.ID()] = st
	return st
}

func (s *seats) find(session string) (*seat, bool) {
	st, ok := s.busy[session]
	if !ok {
		if st, ok = s.idle.Get(session); !ok {
			return nil, false
		}
		s.idle.Remove(session)
		s.busy[session] = st
	}
	st.users++
	return st, true
}

// stay is take for what goes on when the request that took the seat has left it.
func (s *seats) stay(st *seat) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.users++
	return func() { s.leave(st) }
}

func (s *seats) leave(st *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := st.in.ID()
	if st.users--; st.users == 0 && s.busy[id] == st && !st.keeps() {
		delete(s.busy, id)
		s.idle.Add(id, st)
	}
}
