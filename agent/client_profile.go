package agent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// ClientProfile says who a session's tools and results are shown to, which the host program vouches for. Tools that are not for
// that are neither listed nor run; policies read it as input.session.client. A confidence that is not between 0 and 1000
// counts as none. Without it the session sees only tools that ask for nothing.
//
// A session that was handed a grant inherits it. Where it says its own, its selection lies within what its parent had, what
// was switched off stays off, and its confidence is at most the parent's.
func ClientProfile(c perm.ClientFacts) SessionOption {
	return func(s *sessionConfig) { s.client = &c }
}

// shownTo is a new session's client, and the record of it; none where nobody said anything.
func shownTo(given *perm.ClientFacts, from *Session) (c perm.ClientFacts, record json.RawMessage, err error) {
	switch {
	case given != nil:
		c = *given
	case from != nil:
		c = from.client
	}
	c.Capabilities, c.Selected, c.Disabled = slices.Clone(c.Capabilities), slices.Clone(c.Selected), slices.Clone(c.Disabled)
	if c.ProviderTrust < 0 || c.ProviderTrust > 1000 {
		c.ProviderTrust = 0
	}
	if given != nil && from != nil {
		within(&c, from.client)
	}
	if reflect.ValueOf(c).IsZero() {
		return c, nil, nil
	}
	if record, err = canon.Marshal(c); err != nil {
		return c, nil, fmt.Errorf("who the session is shown to: %w", err)
	}
	return c, record, nil
}

// within keeps a client to no more than another.
func within(c *perm.ClientFacts, most perm.ClientFacts) {
	c.ProviderTrust = min(c.ProviderTrust, most.ProviderTrust)
	for _, off := range most.Disabled {
		if !slices.Contains(c.Disabled, off) {
			c.Disabled = append(c.Disabled, off)
		}
	}
	switch {
	case most.Selected == nil:
	case c.Selected == nil:
		c.Selected = slices.Clone(most.Selected)
	default:
		c.Selected = slices.DeleteFunc(c.Selected, func(n string) bool { return !slices.Contains(most.Selected, n) })
	}
}
