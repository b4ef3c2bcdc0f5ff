// A handle of one's own: settings that tools change, and the scheme that takes
// the changes back. Here they are in memory; a device or a service is the same.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// schemeName stands in each change, so that an undo finds who can read it.
const schemeName = "example.setting"

// settings is the world outside: everybody may change it, also without remit.
type settings struct {
	mu     sync.Mutex // never held across a wait
	values map[string]string
}

// value is a setting that is there, or is not.
type value struct {
	Text string `json:"text"`
	Set  bool   `json:"set"`
}

// token is the version: equal tokens are equal in all that an undo restores.
func (v value) token() effect.Token {
	if !v.Set {
		return effect.Absent
	}
	return effect.Token(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(v.Text))))
}

func (s *settings) get(name string) value {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.values[name]
	return value{text, ok}
}

// swap changes a setting if it still is as expected: what somebody else wrote in
// between is never lost.
func (s *settings) swap(name string, from effect.Token, to value) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.values[name]
	if !(value{text, ok}).token().Same(from) {
		return false
	}
	if to.Set {
		s.values[name] = to.Text
	} else {
		delete(s.values, name)
	}
	return true
}

const prefix = "db://settings/"

// inverse is what a change says about the way back: nothing but data.
type inverse struct {
	Was  value `json:"was"`
	Will value `json:"will"`
}

// set is the handle: it takes nothing but a ToolContext, asks for exactly what it
// is going to change, and writes the way back down before it changes anything.
func (s *settings) set(ctx context.Context, tc ctxperm.ToolContext, name string, to value) error {
	resource := prefix + name
	permit, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, resource))
	if err != nil {
		return err
	}
	defer permit.End() // a call does not end before its operations have
	if err := permit.LockResource(ctx, resource); err != nil {
		return err
	}
	was := s.get(name)
	back, err := json.Marshal(inverse{was, to})
	if err != nil {
		return err
	}
	changes, err := permit.RecordChange(ctx, []effect.Change{{
		Scheme: schemeName, Resource: resource, Kind: "write", Pre: was.token(), Post: to.token(), Inverse: back,
	}})
	if err != nil {
		return err // and nothing was changed
	}
	if !s.swap(name, was.token(), to) {
		permit.RecordVersions(changes[0].N, was.token()) // it came to nothing
		return fmt.Errorf("setting %s: somebody else changed it at the same time", name)
	}
	return nil
}

// scheme takes back what set did: in this process, or in one that has only the
// journal.
type scheme struct{ *settings }

// Name is what stands in the changes.
func (scheme) Name() string { return schemeName }

// Settle has nothing to put in order: swap is one step. It says what is there.
func (s scheme) Settle(_ context.Context, c effect.Change) (effect.Token, error) {
	return s.get(strings.TrimPrefix(c.Resource, prefix)).token(), nil
}

// Plan looks at the world, and changes nothing: each resource goes back to what
// it was before the first change of the call, if it still is what a change left.
func (s scheme) Plan(_ context.Context, changes []effect.Change, _ journal.ContentStore) (steps []effect.Step, _ []journal.Blob, _ error) {
	at := map[string]int{}
	for _, c := range changes {
		i, ok := at[c.Resource]
		if !ok {
			i = len(steps)
			at[c.Resource] = i
			steps = append(steps, effect.Step{})
		}
		step, err := s.planned(append(own(changes, c.Resource, c.N), c))
		if err != nil {
			return nil, nil, err
		}
		steps[i] = step
	}
	return steps, nil, nil
}

// own are the changes of a resource before the one numbered n.
func own(changes []effect.Change, resource string, n int) (before []effect.Change) {
	for _, c := range changes {
		if c.Resource == resource && c.N < n {
			before = append(before, c)
		}
	}
	return before
}

func (s scheme) planned(own []effect.Change) (effect.Step, error) {
	first := own[0]
	var back inverse
	if err := json.Unmarshal(first.Inverse, &back); err != nil {
		return effect.Step{}, err
	}
	now := s.get(strings.TrimPrefix(first.Resource, prefix))
	counter, err := json.Marshal(inverse{now, back.Was})
	step := effect.Step{Plan: effect.Conflict, Why: "somebody else changed it since", Change: effect.Change{
		Scheme: schemeName, Resource: first.Resource, Kind: "write", Pre: now.token(), Post: first.Pre, Inverse: counter,
	}}
	for _, c := range own {
		step.Of = append(step.Of, c.N)
		if now.token().Same(c.Post) {
			step.Plan, step.Why = effect.Restored, ""
		}
	}
	if now.token().Same(first.Pre) {
		step.Plan, step.Why = effect.Already, ""
	}
	return step, err
}

// Apply does one step, and leaves alone what is not as planned.
func (s scheme) Apply(_ context.Context, step effect.Step, _ journal.ContentStore) effect.Result {
	res := effect.Result{Resource: step.Change.Resource, Outcome: effect.Failed}
	name := strings.TrimPrefix(step.Change.Resource, prefix)
	var counter inverse
	if err := json.Unmarshal(step.Change.Inverse, &counter); err != nil {
		res.Why = err.Error()
		return res
	}
	res.Outcome, res.Why = effect.Conflict, "somebody else changed it at the same time"
	if s.swap(name, step.Change.Pre, counter.Will) {
		res.Outcome, res.Why = effect.Restored, ""
	}
	res.Now = s.get(name).token()
	return res
}
