package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonpatch"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// Patch makes a new tool from the tool and a patch of its declaration: a list
// of RFC 6902 operations on the document that Tool.Declaration returns. It can
// change
//
//   - the description, the version, the tags and the deprecation text;
//   - the input schema, if it can be shown that the tool already accepted every
//     input that the new schema accepts;
//   - the needs, to accesses within the old ones, if handles or a sandbox hold
//     the tool to them: the accesses of a call are computed as before, and a
//     call that would touch a removed one is invalid;
//   - effect class, destination and hints, to values that promise less: a less
//     undoable class, a destination further out, not idempotent, a higher risk,
//     approval advised, not concurrent, a shorter timeout, more sensitive
//     arguments; and the confinement from handles to trusted.
//
// Patch refuses any other change and names the place in the declaration. The
// new tool has a new declaration: its provenance names the old digest and that
// of the patch. No approval, pin or grade of the old one counts for it, and it
// must be configured again. A patch that begins with a test of /digest fits
// only the tool that it was written for.
func (t Tool) Patch(patch []byte) (Tool, error) {
	made, err := adjust(t, patch)
	if err != nil {
		return Tool{}, fmt.Errorf("adjusting tool %q: %w", t.Name(), err)
	}
	return made, nil
}

// Declaration returns the document that Patch changes, as canonical JSON. It
// holds what models, policies and people see of the tool, and its digest.
func (t Tool) Declaration() ([]byte, error) {
	if t.t == nil {
		return nil, errors.New("the zero Tool declares nothing")
	}
	s := t.look()
	d := adjustable{
		Digest: t.Digest(), Name: s.Name, Description: s.Description, Version: s.Version, Deprecated: s.Deprecated, Tags: s.Tags,
		Input: t.InputSchema(), Output: rawJSON(s.Output), Needs: slices.Concat([]perm.ResourceAccess{}, s.Needs),
		EffectClass: s.EffectClass, Confinement: s.Confinement, Destination: s.Destination, Counters: s.Counters,
		Hints: adjustableHints{s.Hints.Idempotent, s.Hints.Risk, s.Hints.Approval, s.Hints.Concurrent, s.Hints.Timeout.String(), slices.Concat([]string{}, s.Hints.Sensitive)},
	}
	return canon.Marshal(d)
}

// adjustable is a declaration as patches see it.
type adjustable struct {
	Digest      string                `json:"digest"`
	Name        string                `json:"name"`
	Description string                `json:"description"`
	Version     string                `json:"version"`
	Deprecated  string                `json:"deprecated"`
	Tags        []string              `json:"tags"`
	Input       json.RawMessage       `json:"input"`
	Output      rawJSON               `json:"output"`
	Needs       []perm.ResourceAccess `json:"needs"`
	EffectClass effect.Class          `json:"effect_class"`
	Confinement Confinement           `json:"confinement"`
	Destination Destination           `json:"destination"`
	Counters    map[string]string     `json:"counters"`
	Hints       adjustableHints       `json:"hints"`
}

type adjustableHints struct {
	Idempotent bool      `json:"idempotent"`
	Risk       perm.Risk `json:"risk"`
	Approval   bool      `json:"approval"`
	Concurrent bool      `json:"concurrent"`
	Timeout    string    `json:"timeout"`
	Sensitive  []string  `json:"sensitive"`
}

// UnmarshalJSON keeps the bytes.
func (r *rawJSON) UnmarshalJSON(data []byte) error {
	*r = bytes.Clone(data)
	return nil
}

func adjust(t Tool, patch []byte) (Tool, error) {
	raw, err := t.Declaration()
	if err != nil {
		return Tool{}, err
	}
	was, err := canon.Parse(raw, canon.DefaultLimits())
	if err != nil {
		return Tool{}, err
	}
	is, err := jsonpatch.Apply(was, patch)
	if err != nil {
		return Tool{}, err
	}
	steps, err := canon.Canonicalize(patch, canon.DefaultLimits())
	if err != nil {
		return Tool{}, err
	}
	a := adjustment{tool: t, was: was, is: is}
	if err := a.check(); err != nil {
		return Tool{}, err
	}
	s := t.Spec()
	if err := a.apply(&s); err != nil {
		return Tool{}, err
	}
	s.Provenance.Parent, s.Provenance.Patch = t.Digest(), string(canon.Sum("remit/patch/v1", steps))
	return FromSpec(s)
}

// adjustment is the result of a patch.
type adjustment struct {
	tool    Tool
	was, is canon.Value
	now     adjustable
}

// fixed lists the members that belong to the code or name it.
var fixed = []string{"digest", "name", "output", "counters"}

func (a *adjustment) check() error {
	changes := jsonpatch.Differences(a.was, a.is)
	if len(changes) == 0 {
		return errors.New("the patch changes nothing")
	}
	for name := range a.was.Members() {
		before, _ := a.was.Get(name)
		after, there := a.is.Get(name)
		switch {
		case !there:
			return fmt.Errorf("/%s: it is gone; what is left out stands for nothing, so say what it is", name)
		case slices.Contains(fixed, name) && !bytes.Equal(before.Canonical(), after.Canonical()):
			return fmt.Errorf("/%s: it belongs to the code of the tool, and cannot be adjusted", name)
		}
	}
	for name := range a.is.Members() {
		if _, there := a.was.Get(name); !there {
			return fmt.Errorf("%s: a declaration has no such member", jsonpatch.Pointer(name))
		}
	}
	if err := canon.Decode(a.is.Canonical(), &a.now); err != nil {
		return err
	}
	return nil
}

func (a *adjustment) apply(s *Spec) error {
	n := &a.now
	if n.Description == "" && s.Description != "" {
		return errors.New("/description: it is empty: a model knows nothing else of the tool")
	}
	s.Description, s.Version, s.Deprecated, s.Tags = n.Description, n.Version, n.Deprecated, n.Tags
	for _, part := range []func(*Spec) error{a.input, a.needs, a.class, a.confinement, a.destination, a.hints} {
		if err := part(s); err != nil {
			return err
		}
	}
	return nil
}

func (a *adjustment) input(s *Spec) error {
	before, _ := a.was.Get("input")
	after, _ := a.is.Get("input")
	if bytes.Equal(before.Canonical(), after.Canonical()) {
		return nil
	}
	err := schema.CheckNarrower(after, before)
	if wider, ok := errors.AsType[*schema.WiderError](err); ok {
		return fmt.Errorf("%s: %s", jsonpatch.Pointer(append([]string{"input"}, wider.Path...)...), wider.Text)
	}
	s.Input = after.Canonical()
	return err
}

// needs checks changed needs. The old tool computes the accesses of a call,
// from all that it declares, and they must lie within the remaining needs. If
// nothing holds the code to its needs, fewer needs would only hide what it
// does.
func (a *adjustment) needs(s *Spec) error {
	if slices.Equal(a.now.Needs, s.Needs) {
		return nil
	}
	if s.Confinement == Trusted {
		return errors.New("/needs: nothing holds the code of this tool to its needs, so fewer would only hide what it does")
	}
	for i, need := range a.now.Needs {
		place := jsonpatch.Pointer("needs", fmt.Sprint(i))
		p, err := need.Pattern()
		switch {
		case slices.Contains(s.Needs, need):
		case err != nil:
			return fmt.Errorf("%s: %w", place, err)
		case len(p.Params()) > 0:
			return fmt.Errorf("%s: a need with a parameter cannot be new; a bound can, such as file://workspace/docs/**", place)
		case !a.tool.t.bound.Covers(need):
			return fmt.Errorf("%s: %s is more than the tool needs", place, need)
		}
	}
	parent := a.tool
	s.Needs = a.now.Needs
	s.AccessFor = func(in json.RawMessage) ([]perm.ResourceAccess, error) { return parent.Accesses(in) }
	return nil
}

func (a *adjustment) class(s *Spec) error {
	now, was := a.now.EffectClass, a.tool.Class()
	if now == s.EffectClass {
		return nil
	}
	order := []effect.Class{effect.Pure, effect.Reversible, effect.Compensable, effect.Pivot}
	if now != "" && now != effect.Pivot && (!slices.Contains(order, was) || slices.Index(order, now) < slices.Index(order, was)) {
		return fmt.Errorf("/effect_class: %s promises more than %s, or another thing", now, was)
	}
	s.EffectClass, s.ClassOf = now, nil // ClassOf would make single calls milder
	return nil
}

func (a *adjustment) confinement(s *Spec) error {
	if a.now.Confinement != s.Confinement && (a.now.Confinement != Trusted || s.Confinement != Handles) {
		return fmt.Errorf("/confinement: it is %s, and can only become trusted where it is handles", s.Confinement)
	}
	if a.now.Confinement != s.Confinement && (s.Provenance.Parent != "" || !slices.Equal(s.Needs, a.tool.look().Needs)) {
		return errors.New("/confinement: needs are narrower only for a tool that is held to them")
	}
	s.Confinement = a.now.Confinement
	return nil
}

func (a *adjustment) destination(s *Spec) error {
	order := []Destination{NoDestination, Configured, ThirdParty, ModelChosen}
	if slices.Index(order, a.now.Destination) < slices.Index(order, s.Destination) {
		return fmt.Errorf("/destination: it can only become one further out than %s, of none, configured, third_party, model_chosen", s.Destination)
	}
	s.Destination = a.now.Destination
	return nil
}

func (a *adjustment) hints(s *Spec) error {
	now, was := a.now.Hints, s.Hints
	timeout, err := time.ParseDuration(now.Timeout)
	switch {
	case now.Idempotent && !was.Idempotent:
		return errors.New("/hints/idempotent: only the tool's author can say that a second call has no second effect")
	case now.Risk.Max(was.Risk) != now.Risk:
		return errors.New("/hints/risk: only the tool's author can say that it is lower")
	case was.Approval && !now.Approval:
		return errors.New("/hints/approval: the tool's author advises it")
	case now.Concurrent && !was.Concurrent:
		return errors.New("/hints/concurrent: only the tool's author can say that calls do not need one another")
	case err != nil || timeout < 0:
		return errors.New(`/hints/timeout: it is a duration such as "30s", or "0s" for the runtime's own`)
	case was.Timeout > 0 && (timeout == 0 || timeout > was.Timeout):
		return fmt.Errorf("/hints/timeout: it is longer than %s", was.Timeout)
	}
	for _, name := range was.Sensitive {
		if !slices.Contains(now.Sensitive, name) {
			return fmt.Errorf("/hints/sensitive: %q would be shown", name)
		}
	}
	s.Hints = Hints{Idempotent: now.Idempotent, Risk: now.Risk, Approval: now.Approval, Concurrent: now.Concurrent, Timeout: timeout, Sensitive: now.Sensitive}
	return nil
}
