package revert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// scope holds what a revert removes: calls in the order of the revert, with
// their dependent calls.
type scope struct {
	calls []*Call
	txns  map[string]*Txn            // of the calls
	upon  map[string][]dependentNote // by resource: dependent calls that stay
	stay  []*Call                    // the dependent calls that stay
	only  *resourceFilter            // nil: every resource
}

// dependents returns the dependent calls that the caller did not name.
func (s scope) dependents(t *Txn, how Options) []Dependent {
	var out []Dependent
	add := func(c *Call, along bool) {
		out = append(out, Dependent{Txn: c.Ref.Txn, Call: c.Ref.Call, Tool: c.Tool.Name, Included: along})
	}
	for _, c := range s.calls {
		if c.Ref.Txn != t.ID || (len(how.Calls) > 0 && !slices.Contains(how.Calls, c.Ref.Call)) {
			add(c, true)
		}
	}
	for _, c := range s.stay {
		add(c, false)
	}
	return out
}

func (s scope) call(id string) *Call {
	i := slices.IndexFunc(s.calls, func(c *Call) bool { return c.Ref.Call == id })
	return s.calls[i]
}

// only returns the calls with these IDs whose effects remain, and their
// dependent calls, in the order of the revert.
func (t *Txn) only(ids []string) []*Call {
	left := t.EffectiveCalls()
	over, in := dependenciesOf(left), map[*Call]bool{}
	for i := len(left) - 1; i >= 0; i-- { // a dependent call comes before the call that it depends on
		c := left[i]
		in[c] = slices.Contains(ids, c.Ref.Call)
	}
	for again := true; again; {
		again = false
		for upper, lower := range over {
			for c := range lower {
				if in[c] && !in[upper] {
					in[upper], again = true, true
				}
			}
		}
	}
	return slices.DeleteFunc(left, func(c *Call) bool { return !in[c] })
}

// scope finds what a revert of an ended transaction removes. Once its link has
// begun, it includes only transactions that name the link. It looks only at what
// is new since the look that seen is of.
func (r *Reverter) scope(ctx context.Context, t *Txn, how Options, link *Recorder, seen *seenChanges) (scope, error) {
	s := scope{calls: t.EffectiveCalls(), txns: map[string]*Txn{t.ID: t}, upon: map[string][]dependentNote{}, only: how.filter()}
	if len(how.Calls) > 0 {
		s.calls = t.only(how.Calls)
	}
	s.calls = s.only.within(s.calls)
	others, err := r.othersOn(ctx, t, s.calls, how.Cascade, seen)
	if err != nil {
		return s, err
	}
	if how.Cascade {
		s.only.within(slices.Concat(s.calls, others.calls))
	}
	over := dependenciesIn(slices.Concat(s.calls, others.calls), s.only)
	in := map[*Call]bool{}
	for _, c := range s.calls {
		in[c] = true
	}
	for again := true; again; {
		again = false
		for _, c := range others.calls {
			if in[c] || !lies(over, c, in) {
				continue
			}
			other := others.txns[c.Ref.Txn]
			if other.End == "" || !how.Cascade || (link != nil && !slices.Contains(other.RevertedBy, link.Txn())) {
				s.addStaying(c, other)
				continue
			}
			in[c], again = true, true
			s.calls, s.txns[c.Ref.Txn] = append(s.calls, c), other
		}
	}
	slices.SortStableFunc(s.calls, func(a, b *Call) int { return b.Began.Compare(a.Began) })
	s.calls = revertOrder(s.calls)
	return s, nil
}

func lies(over dependencyGraph, c *Call, on map[*Call]bool) bool {
	for lower := range over[c] {
		if on[lower] {
			return true
		}
	}
	return false
}

// addStaying records the call that changed a resource later, and how to include it
// in the revert. For a call that ran in another folder, only the versions tell
// whether its change is present here.
func (s *scope) addStaying(c *Call, t *Txn) {
	away := len(t.Named) > 0
	if !away && !slices.Contains(s.stay, c) {
		s.stay = append(s.stay, c)
	}
	how := "revert that call first, or both with cascade"
	if t.End == "" {
		how = "it has not ended"
	}
	why := dependentNote{why: fmt.Sprintf("call %s of transaction %s changed it later; %s", c.Ref.Call, t.ID, how)}
	for _, ch := range c.remaining() {
		if away {
			why.left = c.versionLeft(ch.Resource)
		}
		if !slices.Contains(s.upon[ch.Resource], why) {
			s.upon[ch.Resource] = append(s.upon[ch.Resource], why)
		}
	}
}

// othersOn finds calls of other transactions in the same namespace. Their
// effects may remain, they were recorded after the first change of calls, and
// their resources overlap those of calls. With deep it also finds calls that
// overlap the found ones, repeatedly. It may find others besides.
func (r *Reverter) othersOn(ctx context.Context, t *Txn, calls []*Call, deep bool, seen *seenChanges) (scope, error) {
	out := scope{txns: map[string]*Txn{}}
	first := firstChange(calls)
	if first == 0 {
		return out, nil
	}
	look := changeScan{of: t.ID, before: seen, seen: map[string]bool{}, same: sameNamespace{r: r, as: t.Session, namespaces: map[string]string{}}}
	for {
		about, known := queryTexts(slices.Concat(calls, out.calls))
		before := len(out.calls)
		err := look.from(ctx, journal.Query{Kinds: []record.Kind{record.KindChanged}, After: first, About: about}, &out)
		if err != nil || !deep || !known || len(out.calls) == before {
			return out, err
		}
	}
}

// changeScan iterates over changes, each call once.
type changeScan struct {
	of     string // the transaction whose calls are known
	before *seenChanges
	seen   map[string]bool
	same   sameNamespace
}

func (l changeScan) from(ctx context.Context, q journal.Query, out *scope) error {
	found, err := l.before.find(ctx, l.same.r.Journal, q)
	if err != nil {
		return err
	}
	for _, h := range found {
		if h.Txn == l.of || l.seen[h.Call] {
			continue
		}
		l.seen[h.Call] = true
		if ok, err := l.same.has(ctx, h.Session); err != nil {
			return err
		} else if !ok {
			continue
		}
		other, ok := out.txns[h.Txn]
		if !ok {
			if other, err = l.before.txn(ctx, l.same.r, h.Txn); err != nil {
				return err
			}
			out.txns[other.ID] = other
		}
		// A tool's changes that reverted a call belong to that revert.
		if c, known := other.Call(h.Call); known && c.HasEffects() && other.Reverts+other.Redoes == "" {
			out.calls = append(out.calls, c)
		}
	}
	return nil
}

// maxQueryTexts is the maximum number of texts in one query. For more changed
// resources, all records are read.
const maxQueryTexts = 64

// queryTexts returns texts for a query. Each change that overlaps the changes
// of calls contains one of them: a change of the same, an enclosing or an
// enclosed resource. known is false if there are too many texts.
func queryTexts(calls []*Call) (texts []string, known bool) {
	seen := map[string]bool{}
	add := func(resource, end string) {
		text, err := canon.Marshal(resource)
		known = known && err == nil
		seen[strings.TrimSuffix(string(text), `"`)+end] = true
	}
	known = true
	for _, c := range calls {
		for _, ch := range c.Changes {
			add(ch.Resource, `"`)
			add(ch.Resource, `/`)
			for above := range Ancestors(ch.Resource) {
				add(above, `"`)
			}
			if !known || len(seen) > maxQueryTexts {
				return nil, false
			}
		}
	}
	return slices.Sorted(maps.Keys(seen)), true
}

// sameNamespace finds the sessions whose resources are in the same namespace.
type sameNamespace struct {
	r          *Reverter
	as         string
	namespaces map[string]string
}

func (s sameNamespace) has(ctx context.Context, session string) (bool, error) {
	for _, id := range []string{s.as, session} {
		if _, ok := s.namespaces[id]; ok {
			continue
		}
		w, err := s.r.EnvironmentFor(ctx, id)
		if errors.Is(err, ErrOtherNode) && id != s.as {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.namespaces[id] = w.Namespace
	}
	return s.namespaces[s.as] == s.namespaces[session], nil
}
