package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// ToolCustomizer returns the declaration of a tool for one session. It gets the
// principal, the facts of the session (ID, labels, requirements, client), and
// the declaration for all sessions. It must only compute. The runtime calls it
// at each listing and each call, so it must be safe for concurrent use.
type ToolCustomizer func(who perm.Principal, session perm.SessionFacts, of tool.Spec) (tool.Spec, error)

// CustomizeTool changes the declaration of a tool for each request of a
// session, such as an enumeration of the user's items or a current description.
// Approvals, remembered approvals, held calls and grades count for the digest
// that they were given for. Calls do not get accesses outside the session's
// grant. Name, version, undo version and the presence of a Revert must stay the
// same. The runtime can therefore revert earlier calls regardless of what cut
// returns. If cut fails or panics, the tool is not listed, a call of it is
// invalid, and Session.ToolHiddenReason says why.
func CustomizeTool(name string, cut ToolCustomizer) Option {
	return func(c *config) error {
		switch _, twice := c.customizers[name]; {
		case cut == nil:
			return fmt.Errorf("the function that customizes %q is nil", name)
		case twice:
			return fmt.Errorf("tool %q is customized twice", name)
		case c.customizers == nil:
			c.customizers = map[string]ToolCustomizer{}
		}
		c.customizers[name] = cut
		return nil
	}
}

// checkCustomized refuses customizers of tools that do not exist or have
// settings.
func (rt *Runtime) checkCustomized() error {
	for name := range rt.customizers {
		t, err := rt.Tools().Find(name)
		switch {
		case err != nil:
			return fmt.Errorf("agent: customize: %w", err)
		case t.Spec().Settings != nil:
			return fmt.Errorf("agent: tool %q cannot be customized: it has settings, which were given to one declaration", name)
		}
	}
	return nil
}

// tools returns the current tools, customized for this session.
func (s *Session) tools() tool.Registry {
	all := s.rt.Tools()
	if len(s.rt.customizers) == 0 {
		return all
	}
	var tools []tool.Tool
	for _, name := range all.Names() {
		for i, t := range slices.Backward(all.Versions(name)) { // the newest comes last
			if cut := s.rt.cutOf(t, i == 0); cut != nil {
				t = s.customize(t, cut)
			}
			tools = append(tools, t)
		}
	}
	made, err := tool.NewRegistry(tools...)
	if err != nil { // impossible: names and versions are unchanged
		return tool.Registry{}
	}
	return made
}

// cutOf returns the customizer of a tool, by name@version, or by name alone for
// the newest version.
func (rt *Runtime) cutOf(t tool.Tool, newest bool) ToolCustomizer {
	if cut := rt.customizers[t.QualifiedName()]; cut != nil {
		return cut
	}
	if newest {
		return rt.customizers[t.Name()]
	}
	return nil
}

// customize customizes a tool for this session. If that fails, the tool is
// disabled and says why.
func (s *Session) customize(t tool.Tool, cut ToolCustomizer) tool.Tool {
	labels, requires := s.state.counters.raised()
	client := s.client
	made, err := cutFrom(t, cut, s.Principal(), perm.SessionFacts{ID: s.id, Labels: labels, Requires: requires, Client: &client, Data: slices.Clone(s.data)})
	if err != nil {
		return internals.WithoutSettings(t, "it could not be made for this session: "+err.Error())
	}
	return made
}

func cutFrom(t tool.Tool, cut ToolCustomizer, who perm.Principal, facts perm.SessionFacts) (made tool.Tool, err error) {
	defer func() {
		if p := recover(); p != nil {
			made, err = tool.Tool{}, fmt.Errorf("the function that makes it panicked (%T)", p)
		}
	}()
	of := t.Spec()
	spec, err := cut(who, facts, t.Spec())
	switch {
	case err != nil:
		return tool.Tool{}, err
	case spec.Name != of.Name || spec.Version != of.Version:
		return tool.Tool{}, errors.New("its name or its version would be another")
	case spec.UndoVersion != of.UndoVersion || (spec.Revert == nil) != (of.Revert == nil):
		return tool.Tool{}, errors.New("its undo version, or whether it has a Revert, would be another, and its calls could not be undone by another process")
	case spec.Settings != nil:
		return tool.Tool{}, errors.New("it would have settings")
	}
	return t.Modify(func(s *tool.Spec) { *s = spec })
}

// ToolHiddenReason returns why a tool is hidden from the session, by its name
// or name@version, or "" if it is visible. It returns an error if there is no
// such tool or if the policy fails.
func (s *Session) ToolHiddenReason(ctx context.Context, name string) (string, error) {
	tools := s.tools()
	t, err := tools.Find(name)
	if err != nil {
		return "", err
	}
	if why := t.NotConfiguredReason(); why != "" {
		return why, nil
	}
	if why := t.HiddenReason(s.client); why != "" {
		return why, nil
	}
	if newest, _ := tools.Get(t.Name()); newest.QualifiedName() != t.QualifiedName() {
		return "there is a newer version; a call may name it", nil
	}
	hidden, err := s.questions().HidesTool(ctx, t)
	if err == nil && hidden {
		return "the policy hides it", nil
	}
	return "", err
}
