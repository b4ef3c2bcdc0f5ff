package mcp

import "time"

// HandOver moves a request state from one session to another. Only the holder
// of the key of the server can do this.
func (s *Server) HandOver(state, from, to string) (string, error) {
	held, err := s.sealer.open(state, from, time.Now())
	if err != nil {
		return "", err
	}
	held.Session = to
	return s.sealer.seal(held)
}
