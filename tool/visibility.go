package tool

import (
	"fmt"
	"slices"

	"github.com/remit-dev/remit/perm"
)

// HiddenReason returns why the tool is hidden from a session, or "" if it is
// visible. It does not evaluate the policy. A session cannot call a tool that
// is hidden from it.
func (t Tool) HiddenReason(c perm.ClientFacts) string {
	s := t.look()
	of := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return n == s.Name || slices.Contains(s.Tags, n) })
	}
	switch {
	case t.t == nil:
		return "there is none"
	case s.DisabledReason != "":
		return s.DisabledReason
	case of(c.Disabled):
		return "it is switched off"
	case c.Selected != nil && !of(c.Selected):
		return "it is not among the tools that were selected"
	case s.Display.Surfaces != nil && !slices.Contains(s.Display.Surfaces, c.Surface):
		return fmt.Sprintf("it is for sessions of the kind %s, and this one is of the kind %q", quotedAll(s.Display.Surfaces), c.Surface)
	case c.ProviderTrust < s.MinProviderTrust || s.MinProviderTrust > 0 && c.ProviderTrust > 1000:
		return fmt.Sprintf("it wants a confidence of %d in the provider of the model, and the session has %d", s.MinProviderTrust, c.ProviderTrust)
	}
	for _, need := range s.Capabilities {
		if !slices.Contains(c.Capabilities, need) {
			return fmt.Sprintf("it is for models with the capability %q", need)
		}
	}
	for _, part := range s.parts {
		if why := part.HiddenReason(s.forPart(c)); why != "" {
			return "its part " + part.Name() + " is not for it: " + why
		}
	}
	return ""
}

// forPart returns the facts of a session as a part of the tool sees them, if
// the user's selection did not exclude the tool. Selecting the tool selects its
// parts. A tag that the tool has from one part selects no other part.
func (s *Spec) forPart(c perm.ClientFacts) perm.ClientFacts {
	parted := func(tag string) bool {
		return slices.ContainsFunc(s.parts, func(p Tool) bool { return slices.Contains(p.look().Tags, tag) })
	}
	itself := func(n string) bool { return n == s.Name || slices.Contains(s.Tags, n) && !parted(n) }
	if slices.ContainsFunc(c.Selected, itself) {
		c.Selected = nil
	}
	return c
}

func quotedAll(list []string) (text string) {
	for i, s := range list {
		if i > 0 {
			text += " or "
		}
		text += fmt.Sprintf("%q", s)
	}
	return text
}
