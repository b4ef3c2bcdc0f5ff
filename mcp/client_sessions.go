package mcp

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// clientSessions holds the client sessions of clients that prove their session
// by a token. A client session with a request, or with an open transaction,
// stays: a second one would not know what the first began. Of the others, the
// last used ones stay; the journal holds the state of those that are dropped.
type clientSessions struct {
	mu   sync.Mutex // never held across a wait
	busy map[string]*clientSession
	idle *simplelru.LRU[string, *clientSession]
}

func newClientSessions(most int) (*clientSessions, error) {
	idle, err := simplelru.NewLRU[string, *clientSession](most, nil)
	return &clientSessions{busy: map[string]*clientSession{}, idle: idle}, err
}

// take finds the client session of a session. The caller must leave it again.
func (s *clientSessions) take(session string) (*clientSession, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(session)
}

// add adds a client session, or takes the one that another request added first.
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

// stay takes the client session again, for work that continues after its
// request.
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
