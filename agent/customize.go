package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// ToolCustomizer makes the declaration of a tool for one session: who asks, what is known of the session (id, labels, requirements, client), and the
// tool as it is for all. It only computes, is asked at each listing and each call, and is safe for concurrent use.
type ToolCustomizer func(who perm.Principal, session perm.SessionFacts, of tool.Spec) (tool.Spec, error)

// CustomizeTool makes a tool of the runtime anew for each request of a session: an enumeration of what this user has, a description of what
// there is now. Approvals, remembered ones, held calls and grades count for the digest that they were given for, as ever; what the session's grant does not
// hold its calls do not get. Name, version, undo version and whether there is a Revert stay: so calls that were made before are
// undone, whatever the function returns by then, or where it fails. A function that fails or panics leaves the tool without an offer: it is not listed, a call of
// it is invalid, and Session.ToolHiddenReason says why.
func CustomizeTool(name string, cut ToolCustomizer) Option {
	return func(c *config) error {
		switch _, twice := c.tailored[name]; {
		case cut == nil:
			return fmt.Errorf("the function that tailors %q is nil", name)
		case twice:
			return fmt.Errorf("tool %q is tailored twice", name)
		case c.tailored == nil:
			c.tailored = map[string]ToolCustomizer{}
		}
		c.tailored[name] = cut
		return nil
	}
}

// checkTailored refuses what could never be tailored.
func (rt *Runtime) checkTailored() error {
	for name := range rt.tailored {
		t, err := rt.Tools().Find(name)
		switch {
		case err != nil:
			return fmt.Errorf("agent: to be tailored: %w", err)
		case t.Spec().Settings != nil:
			return fmt.Errorf("agent: tool %q cannot be tailored: it has settings, which were given to one declaration", name)
		}
	}
	return nil
}

// tools are those of this moment, as they are for this session.
func (s *Session) tools() tool.Registry {
	all := s.rt.Tools()
	if len(s.rt.tailored) == 0 {
		return all
	}
	var tools []tool.Tool
	for _, name := range all.Names() {
		for i, t := range slices.Backward(all.Versions(name)) { // the newest comes last
			if cut := s.rt.cutOf(t, i == 0); cut != nil {
				t = s.tailor(t, cut)
			}
			tools = append(tools, t)
		}
	}
	made, err := tool.NewRegistry(tools...)
	if err != nil { // which cannot be: names and versions are as they were
		return tool.Registry{}
	}
	return made
}

// cutOf is what tailors a tool: by its name and version, and the newest by its name alone.
func (rt *Runtime) cutOf(t tool.Tool, newest bool) ToolCustomizer {
	if cut := rt.tailored[t.QualifiedName()]; cut != nil {
		return cut
	}
	if newest {
		return rt.tailored[t.Name()]
	}
	return nil
}

// tailor makes a tool for this session. One that cannot be made is not offered, and says why.
func (s *Session) tailor(t tool.Tool, cut ToolCustomizer) tool.Tool {
	labels, requires := s.standing.tally.raised()
	client := s.client
	made, err := cutFrom(t, cut, s.Principal(), perm.SessionFacts{ID: s.id, Labels: labels, Requires: requires, Client: &client})
	if err != nil {
		return t.WithoutSettings("it could not be made for this session: " + err.Error())
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

// ToolHiddenReason says why the session is not offered a tool, by its name or name@version; "" where it is. An error says that there is no such tool,
// or that the policy could not be asked.
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
	shown, err := s.Tools(ctx)
	if slices.ContainsFunc(shown, func(other tool.Tool) bool { return other.Name() == t.Name() }) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return "the policy hides it", nil
}
