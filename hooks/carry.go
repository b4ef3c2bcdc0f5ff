package hooks

import "slices"

// Carried is what a session knows that no journal has. A process that ends
// hands it to the next one, so that the prompt goes on there.
type Carried struct {
	Client  string   `json:"client"`
	Session string   `json:"session"`          // the client's ID
	Prompt  string   `json:"prompt,omitempty"` // ID
	Given   bool     `json:"given,omitempty"`  // the ID is the client's
	Text    string   `json:"text,omitempty"`
	LeftOn  bool     `json:"left_on,omitempty"` // an observed command may run on in the background
	Asked   []string `json:"asked,omitempty"`   // calls that nobody can approve any more, by digest
}

// Busy reports whether a client works on a use of its tool, or a session opens.
// The process cannot end then without a loss.
func (s *Server) Busy() bool {
	return slices.ContainsFunc(s.all(), func(one *session) bool {
		select {
		case <-one.opened:
		default:
			return true
		}
		one.mu.Lock()
		defer one.mu.Unlock()
		return len(one.open) > 0 || len(one.behind) > 0
	})
}

// Carry returns what the open sessions know. Call it before Close.
func (s *Server) Carry() (all []Carried) {
	for _, one := range s.all() {
		<-one.opened
		if one.failed != nil {
			continue
		}
		one.mu.Lock()
		c := Carried{
			Client: one.client.Name, Session: one.id, Prompt: one.prompt.id, Given: one.prompt.given, Text: one.prompt.text, LeftOn: one.leftOn,
		}
		for use := range one.asked {
			c.Asked = append(c.Asked, use)
		}
		for use, w := range one.waiting {
			if w.txn == one.txn { // Close commits it
				c.Asked = append(c.Asked, use)
			}
		}
		one.mu.Unlock()
		all = append(all, c)
	}
	return all
}

// Continue has sessions that begin later go on with what an earlier process
// knew of them. Call it before the first event.
func (s *Server) Continue(all []Carried) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range all {
		s.carried[c.Client+"\x00"+c.Session] = c
	}
}

// carry gives a new session what an earlier process knew of it.
func (s *Server) carry(one *session) {
	s.mu.Lock()
	c, known := s.carried[one.key]
	delete(s.carried, one.key)
	s.mu.Unlock()
	if !known {
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.prompt, one.leftOn = prompt{id: c.Prompt, text: c.Text, given: c.Given}, c.LeftOn
	for _, use := range c.Asked {
		one.asked[use] = true
	}
}

// all returns the sessions.
func (s *Server) all() (all []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.sessions {
		all = append(all, one)
	}
	return all
}
