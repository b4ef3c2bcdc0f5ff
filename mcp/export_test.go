package mcp

import "time"

// HandOver is a request state of one session as if it had been given to another one, which nobody can make who has not the server's key.
func (s *Server) HandOver(state, from, to string) (string, error) {
	held, err := s.sealer.open(state, from, time.Now())
	if err != nil {
		return "", err
	}
	held.Session = to
	return s.sealer.seal(held)
}
