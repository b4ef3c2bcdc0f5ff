package policydiff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// defaultTries is the number of requests that Run builds by default.
const defaultTries = 20_000

// maxDifferences bounds the differences of a report, and maxShrunk the
// counterexamples that are made small.
const (
	maxDifferences = 100
	maxShrunk      = 400
)

// Options configure Run.
type Options struct {
	Old, New *rego.Engine
	Tries    int    // requests to build, at most; 0: defaultTries
	Seed     uint64 // the same seed builds the same requests
}

// Report is the result of a search.
type Report struct {
	Tried       int          `json:"tried"`     // requests that both policies decided
	Undecided   int          `json:"undecided"` // requests that were invalid, or that a policy did not decide in time
	Rules       int          `json:"rules"`     // rules that gave conditions
	Changed     int          `json:"changed"`   // those that the other policy does not have in this form
	Seed        uint64       `json:"seed"`
	Stopped     string       `json:"stopped"` // tries, time or differences: what ended the search
	Differences []Difference `json:"differences"`
}

// Difference is one pair of outcomes with a counterexample.
type Difference struct {
	Before Outcome      `json:"before"`
	After  Outcome      `json:"after"`
	Fields []Field      `json:"fields"` // the fields of Input that matter
	Input  perm.Request `json:"input"`  // the counterexample, in the form of remit policy eval
}

// Outcome is what one policy decides.
type Outcome struct {
	Effect  string        `json:"effect"`
	Reasons []perm.Reason `json:"reasons"`
	// Sets holds what only this policy attaches to the call, by the name of the
	// set: require, limit, label, mask, redact, ensure, hide,
	// remember, and hold for a call that also asks.
	Sets map[string][]string `json:"sets,omitempty"`
}

// Loosens reports whether the new policy is milder.
func (d Difference) Loosens() bool { return rank(d.After.Effect) > rank(d.Before.Effect) }

func rank(effect string) int {
	return slices.Index([]string{"deny", "ask", "hold", "allow"}, effect)
}

// Field is a place of a request and its value.
type Field struct {
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// Run searches requests that the policies decide differently. It ends after
// Options.Tries requests, or at the deadline of ctx. It returns an error if ctx
// is cancelled otherwise.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Old == nil || o.New == nil {
		return nil, errors.New("policydiff: Options need two policies")
	}
	if o.Tries <= 0 {
		o.Tries = defaultTries
	}
	s := &search{o: o, g: newGenerator(o.Old, o.New, rand.New(rand.NewPCG(o.Seed, 17))), raw: map[string]bool{}, seen: map[string]bool{}}
	s.r = Report{Seed: o.Seed, Rules: len(s.g.targets), Changed: len(s.g.changed), Stopped: "tries", Differences: []Difference{}}
	for s.r.Tried+s.r.Undecided < o.Tries {
		if err := s.try(ctx); err != nil {
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				s.r.Stopped = "time"
				break
			}
			return nil, fmt.Errorf("policydiff: %w", err)
		}
		if len(s.r.Differences) >= maxDifferences || len(s.raw) >= maxShrunk {
			s.r.Stopped = "differences"
			break
		}
	}
	return &s.r, nil
}

type search struct {
	o    Options
	g    *generator
	r    Report
	raw  map[string]bool // pairs whose counterexample was made small
	seen map[string]bool // pairs of the report
}

// errUndecided states that a request is invalid, or that a policy did not
// decide it in time.
var errUndecided = errors.New("the request was not decided")

// pair is what both policies decide about one request.
type pair struct{ before, after Outcome }

func (p pair) differs() bool {
	return p.before.Effect != p.after.Effect || !sameSets(p.before.Sets, p.after.Sets)
}

// onlyDifferent removes the elements of sets that both policies have. A denied
// call has no obligations, so their absence says nothing beside the effect.
func (p pair) onlyDifferent() pair {
	x, y := p.before.Sets, p.after.Sets
	p.before.Sets, p.after.Sets = map[string][]string{}, map[string][]string{}
	if p.before.Effect != p.after.Effect && (p.before.Effect == "deny" || p.after.Effect == "deny") {
		return p
	}
	for _, set := range setNames {
		p.before.add(set, slices.DeleteFunc(slices.Clone(x[set]), func(e string) bool { return slices.Contains(y[set], e) })...)
		p.after.add(set, slices.DeleteFunc(slices.Clone(y[set]), func(e string) bool { return slices.Contains(x[set], e) })...)
	}
	return p
}

func sameSets(a, b map[string][]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if !slices.Equal(a[k], b[k]) {
			return false
		}
	}
	return true
}

// key names the rules that decided, the effects and the sets that differ.
func (p pair) key() string {
	var b strings.Builder
	p = p.onlyDifferent()
	for _, o := range []Outcome{p.before, p.after} {
		fmt.Fprintf(&b, "%s %q %q | ", o.Effect, rulesOf(o), fmt.Sprint(o.Sets))
	}
	return b.String()
}

func rulesOf(o Outcome) []string {
	var all []string
	for _, r := range o.Reasons {
		all = append(all, r.Set+" "+r.At)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// maxUnmasked bounds how often an attempt is changed so that other rules do not
// hide its target.
const maxUnmasked = 3

func (s *search) try(ctx context.Context) error {
	a := s.g.attempt()
	for range maxUnmasked {
		p, _, err := s.decide(ctx, a.d)
		switch {
		case errors.Is(err, errUndecided):
			s.r.Undecided++
			return nil
		case err != nil:
			return err
		}
		s.r.Tried++
		if p.differs() {
			if s.raw[p.key()] {
				return nil
			}
			s.raw[p.key()] = true
			return s.report(ctx, a.d, p)
		}
		if !s.g.unmask(&a, p) {
			return nil
		}
	}
	return nil
}

// report makes a counterexample small and adds it to the report.
func (s *search) report(ctx context.Context, d document, p pair) error {
	d, p, err := s.shrink(ctx, d, p)
	if err != nil {
		return err
	}
	s.raw[p.key()] = true
	if s.seen[p.key()] {
		return nil
	}
	s.seen[p.key()] = true
	_, r, err := s.decide(ctx, d)
	if err != nil {
		return err
	}
	fields, err := s.fields(ctx, d, r)
	if err != nil {
		return err
	}
	p = p.onlyDifferent()
	s.r.Differences = append(s.r.Differences, Difference{Before: p.before, After: p.after, Fields: fields, Input: r})
	return nil
}

// decide decides a document by both policies.
func (s *search) decide(ctx context.Context, d document) (p pair, r perm.Request, err error) {
	text, err := json.Marshal(d)
	if err != nil {
		return p, r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return p, r, errUndecided // no request
	}
	if p.before, err = outcome(ctx, s.o.Old, r); err == nil {
		p.after, err = outcome(ctx, s.o.New, r)
	}
	return p, r, err
}

func outcome(ctx context.Context, e *rego.Engine, r perm.Request) (Outcome, error) {
	d, err := e.Decide(ctx, r)
	switch {
	case ctx.Err() != nil:
		return Outcome{}, context.Cause(ctx)
	case errors.Is(err, perm.ErrTimeout):
		return Outcome{}, errUndecided
	}
	return outcomeOf(d), nil // an error comes with a denial
}

var setNames = []string{"ensure", "hide", "hold", "label", "limit", "mask", "redact", "remember", "require"}

func outcomeOf(d perm.Decision) Outcome {
	all := d.Details()
	o := Outcome{Effect: d.Effect().String(), Reasons: all.Reasons, Sets: map[string][]string{}}
	if o.Reasons == nil {
		o.Reasons = []perm.Reason{}
	}
	if d.Effect() == perm.Deny && all.FailedPostconditions == nil && all.HideReasons == nil && all.Redact == nil && all.Labels == nil {
		return o // nothing else counts
	}
	o.add("label", all.Labels...)
	o.add("redact", all.Redact...)
	if len(all.FailedPostconditions) > 0 {
		o.add("ensure", "failed")
	}
	if len(all.HideReasons) > 0 {
		o.add("hide", "hidden")
	}
	if d.Effect() == perm.Deny {
		return o
	}
	o.add("mask", all.Masks...)
	if d.Effect() == perm.Ask && d.Has("hold") {
		o.add("hold", "until the commit")
	}
	for _, r := range all.Requires {
		o.add("require", r.Text)
	}
	for _, l := range all.Limits {
		l.At = ""
		text, _ := json.Marshal(l) // texts, and a number that the policy checked
		o.add("limit", string(text))
	}
	if all.Remember.Scope != "" {
		text, _ := json.Marshal(all.Remember) // texts alone
		o.add("remember", string(text))
	}
	return o
}

// add adds texts to a set, sorted and each once.
func (o *Outcome) add(set string, texts ...string) {
	if len(texts) > 0 {
		o.Sets[set] = append(o.Sets[set], texts...)
		slices.Sort(o.Sets[set])
		o.Sets[set] = slices.Compact(o.Sets[set])
	}
}
