package compose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// compose declares the tool that the parts make together.
func compose(about Declaration, n *node) (tool.Tool, error) {
	n.parts = slices.Clone(n.parts)
	s, err := n.spec(about)
	if err != nil {
		return tool.Tool{}, fmt.Errorf("compose %q: %w", about.Name, err)
	}
	var parts []tool.Tool
	for _, p := range n.parts {
		parts = append(parts, p.Tool)
	}
	return tool.FromSpec(internals.WithParts(s, parts))
}

func (n *node) spec(about Declaration) (tool.Spec, error) {
	if len(n.parts) == 0 {
		return tool.Spec{}, errors.New("there are no parts")
	}
	s := tool.Spec{
		Name: about.Name, Description: about.Description, Version: about.Version, Tags: slices.Clone(about.Tags),
		Confinement: tool.Handles, Destination: tool.NoDestination, EffectClass: effect.Pure,
		Hints: tool.Hints{Idempotent: true, Risk: perm.RiskLow}, Execute: n.execute, AccessFor: n.access,
	}
	verifies, reverts, classes := false, false, n.kind == "conditional"
	for i, p := range n.parts {
		part := p.Tool.Spec()
		if err := n.fits(i, part); err != nil {
			return s, fmt.Errorf("part %d, %s: %w", i+1, part.Name, err)
		}
		s.Needs = append(s.Needs, p.Tool.RequiredAccesses()...)
		for _, tag := range part.Tags {
			if !slices.Contains(s.Tags, tag) {
				s.Tags = append(s.Tags, tag)
			}
		}
		s.Confinement = weaker(s.Confinement, part.Confinement)
		if part.Coverage == effect.Declared {
			s.Coverage = effect.Declared
		}
		s.Destination = worst(destinations, s.Destination, part.Destination)
		if part.EffectClass == "" || s.EffectClass == "" {
			s.EffectClass = "" // what is undeclared of a part is so of the whole
		} else {
			s.EffectClass = worst(effect.Classes(), s.EffectClass, part.EffectClass)
		}
		s.Display.Surfaces = common(s.Display.Surfaces, part.Display.Surfaces)
		s.MinProviderTrust = max(s.MinProviderTrust, part.MinProviderTrust)
		s.OutputContent = contentOf(s.OutputContent, part.OutputContent)
		s.Capabilities = append(s.Capabilities, part.Capabilities...)
		s.Hints.Idempotent = s.Hints.Idempotent && part.Hints.Idempotent && (i == 0 || !n.runsOneAtATime())
		s.Hints.Risk, s.Hints.Approval = s.Hints.Risk.Max(part.Hints.Risk), s.Hints.Approval || part.Hints.Approval
		s.Hints.Sensitive = append(s.Hints.Sensitive, part.Hints.Sensitive...)
		verifies, reverts, classes = verifies || part.Verify != nil, reverts || part.Revert != nil, classes || part.ClassOf != nil
	}
	s.Hints.Timeout = n.timeout()
	s.Provenance = n.provenance()
	if verifies {
		s.Verify = n.look
	}
	if reverts || s.Confinement == tool.Trusted && s.EffectClass != effect.Pure {
		s.Revert, s.UndoVersion = n.revert, n.undoVersion()
	}
	if classes && s.EffectClass != "" {
		s.ClassOf = n.class
	}
	if err := n.schemas(about, &s); err != nil {
		return s, err
	}
	s.Roles = n.roles(s.Input)
	return s, nil
}

// runsOneAtATime reports whether what a part does follows from what came of the one before: a second
// time another one may run, or the same with another input.
func (n *node) runsOneAtATime() bool { return n.kind == "chain" || n.kind == "fallback" }

// contentOf is what is said of the content of several parts: one that says nothing changes nothing.
func contentOf(all, one *provenance.Content) *provenance.Content {
	switch {
	case one == nil:
		return all
	case all != nil:
		both := all.With(*one)
		return &both
	default:
		whole := *one
		whole.Fields = nil // the output of a part is not that of the whole
		return &whole
	}
}

// fits refuses parts that a call cannot hold as it would hold them alone.
func (n *node) fits(i int, part tool.Spec) error {
	switch {
	case n.parts[i].Tool.IsZero():
		return errors.New("it is the zero Tool")
	case n.parts[i].With != nil && (n.kind != "chain" || i == 0 || n.parts[i].Input != nil):
		return errors.New("the With of a part is for a later part of a chain, instead of Input")
	case internals.Compiled(n.parts[i].Tool).Sandboxed || part.Confinement == tool.Sandbox:
		return errors.New("it runs a program, whose changes are decided and made when its call ends, after all parts have ended; call it by itself")
	case part.Coverage == effect.Observed:
		return errors.New("its roots are compared before and after a call of its own; call it by itself")
	case part.Settings != nil:
		return errors.New("its settings are given to it by its name; call it by itself")
	case part.ParseScript != nil:
		return errors.New("a policy reads what its script would run, of a call of its own; call it by itself")
	case len(part.Counters) > 0:
		return errors.New("a policy limits its sums by its name, and a call of another tool would pass by them; call it by itself")
	case len(part.Hints.Sensitive) > 0 && !n.own(i):
		return errors.New("it has sensitive arguments, which are hidden by their names, and its input is made of something else; give it the call's own input")
	}
	return nil
}

// access is what is asked for before a call: for the parts that are certain to run, with
// inputs that are known. What other parts need is asked for before each of them.
func (n *node) access(in json.RawMessage) ([]perm.ResourceAccess, error) {
	first, last := 0, 0
	switch n.kind {
	case "parallel":
		last = len(n.parts) - 1
	case "conditional":
		i, err := n.chosen(in)
		if err != nil {
			return nil, err
		}
		first, last = i, i
	}
	var all []perm.ResourceAccess
	for i := first; i <= last; i++ {
		raw, err := n.input(i, in, in)
		var ask []perm.ResourceAccess
		if err == nil {
			_, ask, _, err = admit(n.parts[i].Tool, raw)
		}
		if err != nil {
			return nil, fmt.Errorf("part %d, %s: %w", i+1, n.parts[i].Tool.Name(), err)
		}
		for _, a := range ask {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all, nil
}

// class is the worst of the parts that may run with this input.
func (n *node) class(in json.RawMessage) effect.Class {
	all := effect.Pure
	only := -1
	if n.kind == "conditional" {
		i, err := n.chosen(in)
		if err != nil {
			return ""
		}
		only = i
	}
	for i, p := range n.parts {
		if only >= 0 && i != only {
			continue
		}
		class := p.Tool.Class()
		if n.kind != "chain" || i == 0 {
			if raw, err := n.input(i, in, in); err == nil {
				if _, _, of, err := admit(p.Tool, raw); err == nil {
					class = of
				}
			}
		}
		all = worst(effect.Classes(), all, class)
	}
	return all
}

// defaultPartTimeout is what a part without a timeout of its own counts for.
const defaultPartTimeout = 2 * time.Minute

// timeout is the time of all parts that run one after the other, where one says its own.
func (n *node) timeout() (all time.Duration) {
	said := false
	for _, p := range n.parts {
		t := p.Tool.Spec().Hints.Timeout
		said = said || t > 0
		if t == 0 {
			t = defaultPartTimeout
		}
		if n.runsOneAtATime() {
			all += t
		} else {
			all = max(all, t)
		}
	}
	if !said {
		return 0
	}
	return all
}

// provenance names the parts with their digests, so that the digest of the whole changes
// with that of any part.
func (n *node) provenance() provenance.Source {
	names := make([]string, 0, len(n.parts))
	for _, p := range n.parts {
		names = append(names, p.Tool.Name()+" "+p.Tool.Digest())
	}
	return provenance.Source{Kind: provenance.Composed, Name: n.kind + ": " + strings.Join(names, ", ")}
}

// undoVersion stands for the ways back of the parts, in their order.
func (n *node) undoVersion() string {
	parts := [][]byte{[]byte(n.kind)}
	for _, p := range n.parts {
		s := p.Tool.Spec()
		parts = append(parts, []byte(s.Name), []byte(s.UndoVersion))
	}
	return string(canon.Sum("remit/parts/v1", parts...))
}

// schemas are those of the parts, where they fit together.
func (n *node) schemas(about Declaration, s *tool.Spec) error {
	s.Input = slices.Clone(about.Input)
	known := about.Input != nil
	for i, p := range n.parts {
		own := p.Tool.Spec().Input
		switch {
		case !n.own(i):
		case !known:
			s.Input, known = own, true
		case about.Input == nil && !bytes.Equal(compact(own), compact(s.Input)):
			return fmt.Errorf("part %d, %s, has another input than the part before: say in About.Input what the call has, and in each Part.Input how that becomes its own", i+1, p.Tool.Name())
		}
	}
	if !known {
		return errors.New("every part makes its own input of the call's: say in About.Input what that is")
	}
	last := n.parts[len(n.parts)-1].Tool.Spec().Output
	switch n.kind {
	case "chain":
		s.Output = last
	case "fallback", "conditional":
		same := func(p Part) bool { return bytes.Equal(compact(p.Tool.Spec().Output), compact(last)) }
		if !slices.ContainsFunc(n.parts, func(p Part) bool { return !same(p) }) {
			s.Output = last
		}
	}
	return nil
}

func compact(schema json.RawMessage) []byte {
	out, err := canon.Canonicalize(schema, canon.DefaultLimits())
	if err != nil {
		return schema
	}
	return out
}

var destinations = []tool.Destination{tool.NoDestination, tool.Configured, tool.ThirdParty, tool.ModelChosen}

// worst is the later one in the order.
func worst[T comparable](order []T, a, b T) T {
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// common are the surfaces that list both; nil is all of them.
func common(a, b []string) []string {
	if a == nil || b == nil {
		return append(a, b...)
	}
	both := []string{}
	for _, s := range a {
		if slices.Contains(b, s) {
			both = append(both, s)
		}
	}
	return both
}

// weaker is the confinement of both. A composed tool is Go code: never more than handles.
func weaker(a, b tool.Confinement) tool.Confinement {
	if b == tool.Trusted || b == "" {
		return tool.Trusted
	}
	return a
}
