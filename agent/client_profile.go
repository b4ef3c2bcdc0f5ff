package agent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// ClientProfile sets which client shows the session's tools and results. The
// host program vouches for it. Tools that are not for this client are neither
// listed nor run. Policies read the profile as input.session.client. A
// confidence outside 0 to 1000 counts as none. Without a profile the session
// sees only tools without requirements.
//
// A session with a delegated grant inherits the profile. If it sets its own,
// its selection lies within that of the parent, disabled items stay disabled,
// and its confidence is at most the parent's.
func ClientProfile(c perm.ClientFacts) SessionOption {
	return func(s *sessionConfig) { s.client = &c }
}

// shownTo returns a new session's client and its record. The record is nil if
// no profile is set.
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

// within limits a client to the rights of another.
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
