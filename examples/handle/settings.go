// Command handle has its own handle: settings that tools change, and the scheme
// that reverts the changes. Here the settings are in memory; a device or a
// service works the same way.
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

// schemeName is part of each change, so that a revert finds the scheme.
const schemeName = "example.setting"

// settings are resources that any program may change, also without remit.
type settings struct {
	mu     sync.Mutex // never held across a wait
	values map[string]string
}

// value is a setting that exists or not.
type value struct {
	Text string `json:"text"`
	Set  bool   `json:"set"`
}

// token returns the version: equal tokens are equal in everything that a revert
// restores.
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

// swap changes a setting if it is still as expected: a concurrent change is
// never lost.
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

// inverse is the inverse of a change: only data.
type inverse struct {
	Was  value `json:"was"`
	Will value `json:"will"`
}

// set is the handle. It takes only a ToolContext, requests exactly the access
// that it needs, and records the inverse before it changes anything.
func (s *settings) set(ctx context.Context, tc ctxperm.ToolContext, name string, to value) error {
	resource := prefix + name
	permit, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, resource))
	if err != nil {
		return err
	}
	defer permit.End() // a call does not end before its operations
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
		permit.RecordVersions(changes[0].N, was.token()) // the change did not happen
		return fmt.Errorf("setting %s: another process changed it concurrently", name)
	}
	return nil
}

// scheme reverts the changes of set: in this process, or in one that has only
// the journal.
type scheme struct{ *settings }

// Name returns the scheme's name in the changes.
func (scheme) Name() string { return schemeName }

// Settle has nothing to repair: swap is one step. It returns the current
// version.
func (s scheme) Settle(_ context.Context, c effect.Change) (effect.Token, error) {
	return s.get(strings.TrimPrefix(c.Resource, prefix)).token(), nil
}

// Plan reads the settings and changes nothing. Each resource is restored to its
// version before the first change of the call, if its current version is one
// that a change left.
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

// own returns the changes of a resource before the one numbered n.
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
	step := effect.Step{Plan: effect.Conflict, Why: "another client changed it after the call", Change: effect.Change{
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

// Apply executes one step, unless the current version is not the planned one.
func (s scheme) Apply(_ context.Context, step effect.Step, _ journal.ContentStore) effect.Result {
	res := effect.Result{Resource: step.Change.Resource, Outcome: effect.Failed}
	name := strings.TrimPrefix(step.Change.Resource, prefix)
	var counter inverse
	if err := json.Unmarshal(step.Change.Inverse, &counter); err != nil {
		res.Why = err.Error()
		return res
	}
	res.Outcome, res.Why = effect.Conflict, "another process changed it concurrently"
	if s.swap(name, step.Change.Pre, counter.Will) {
		res.Outcome, res.Why = effect.Restored, ""
	}
	res.Now = s.get(name).token()
	return res
}
