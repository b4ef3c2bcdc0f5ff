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
	"github.com/remit-dev/remit/revert"
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
func (v value) token() revert.Token {
	if !v.Set {
		return revert.Absent
	}
	return revert.Token(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(v.Text))))
}

func (s *settings) get(name string) value {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.values[name]
	return value{text, ok}
}

// swap changes a setting if it still is as expected: what somebody else wrote in
// between is never lost.
func (s *settings) swap(name string, from revert.Token, to value) bool {
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
	if err := permit.Turn(ctx, resource); err != nil {
		return err
	}
	was := s.get(name)
	back, err := json.Marshal(inverse{was, to})
	if err != nil {
		return err
	}
	changes, err := permit.Intend(ctx, []revert.Change{{
		Scheme: schemeName, Resource: resource, Kind: "write", Pre: was.token(), Post: to.token(), Inverse: back,
	}})
	if err != nil {
		return err // and nothing was changed
	}
	if !s.swap(name, was.token(), to) {
		permit.Landed(changes[0].N, was.token()) // it came to nothing
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
func (s scheme) Settle(_ context.Context, c revert.Change) (revert.Token, error) {
	return s.get(strings.TrimPrefix(c.Resource, prefix)).token(), nil
}

// Plan looks at the world, and changes nothing: each resource goes back to what
// it was before the first change of the call, if it still is what a change left.
func (s scheme) Plan(_ context.Context, changes []revert.Change, _ revert.Keeper) (steps []revert.Step, _ []revert.Blob, _ error) {
	at := map[string]int{}
	for _, c := range changes {
		i, ok := at[c.Resource]
		if !ok {
			i = len(steps)
			at[c.Resource] = i
			steps = append(steps, revert.Step{})
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
func own(changes []revert.Change, resource string, n int) (before []revert.Change) {
	for _, c := range changes {
		if c.Resource == resource && c.N < n {
			before = append(before, c)
		}
	}
	return before
}

func (s scheme) planned(own []revert.Change) (revert.Step, error) {
	first := own[0]
	var back inverse
	if err := json.Unmarshal(first.Inverse, &back); err != nil {
		return revert.Step{}, err
	}
	now := s.get(strings.TrimPrefix(first.Resource, prefix))
	counter, err := json.Marshal(inverse{now, back.Was})
	step := revert.Step{Plan: revert.Conflict, Why: "somebody else changed it since", Change: revert.Change{
		Scheme: schemeName, Resource: first.Resource, Kind: "write", Pre: now.token(), Post: first.Pre, Inverse: counter,
	}}
	for _, c := range own {
		step.Of = append(step.Of, c.N)
		if now.token().Same(c.Post) {
			step.Plan, step.Why = revert.Restored, ""
		}
	}
	if now.token().Same(first.Pre) {
		step.Plan, step.Why = revert.Already, ""
	}
	return step, err
}

// Apply does one step, and leaves alone what is not as planned.
func (s scheme) Apply(_ context.Context, step revert.Step, _ revert.Keeper) revert.Result {
	res := revert.Result{Resource: step.Change.Resource, Outcome: revert.UndoFailed}
	name := strings.TrimPrefix(step.Change.Resource, prefix)
	var counter inverse
	if err := json.Unmarshal(step.Change.Inverse, &counter); err != nil {
		res.Why = err.Error()
		return res
	}
	res.Outcome, res.Why = revert.Conflict, "somebody else changed it at the same time"
	if s.swap(name, step.Change.Pre, counter.Will) {
		res.Outcome, res.Why = revert.Restored, ""
	}
	res.Now = s.get(name).token()
	return res
}
