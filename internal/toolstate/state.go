package toolstate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/verify"
)

// SchemeName is the scheme of state changes.
const SchemeName = "state"

const prefix = "state://"

// Resource returns the resource of a tool's state for a session.
func Resource(session, tool string) string { return prefix + session + "/" + tool }

func parse(resource string) (session, tool string, ok bool) {
	rest, ok := strings.CutPrefix(resource, prefix)
	session, tool, cut := strings.Cut(rest, "/")
	return session, tool, ok && cut
}

// Newest returns the state of a tool for a session. A missing or erased state
// is Absent.
func Newest(ctx context.Context, j journal.Journal, session, tool string) (record.State, error) {
	none := record.State{Session: session, Tool: tool, Version: effect.Absent}
	for e, err := range j.Entries(ctx, journal.Query{Session: session, Kinds: []record.Kind{record.KindState}, Newest: true}) {
		if err != nil {
			return none, err
		}
		if !none.IsOf(e.Header.Call) {
			continue
		}
		if e.Erased != "" {
			return none, nil
		}
		r, err := record.Unseal(e)
		if err != nil {
			return none, err
		}
		if b, ok := r.Body.(*record.State); ok {
			return *b, nil
		}
	}
	return none, nil
}

// Read returns the state of a tool for a session, and its content; no content
// if there is no state.
func Read(ctx context.Context, j journal.Journal, session, tool string) (record.State, json.RawMessage, error) {
	now, err := Newest(ctx, j, session, tool)
	if err != nil || now.Content == nil {
		return now, nil, err
	}
	r, err := j.OpenContent(ctx, *now.Content)
	if err != nil {
		return now, nil, fmt.Errorf("the state of tool %s: %w", tool, err)
	}
	raw, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return now, nil, fmt.Errorf("the state of tool %s: %w", tool, err)
	}
	return now, raw, nil
}

// Token returns the version of a content.
func Token(content json.RawMessage) effect.Token {
	return effect.Token(canon.Sum("remit/state-token/v1", content))
}

// stateInverse holds the data to revert and to redo a change.
type stateInverse struct {
	Before *effect.BlobRef `json:"before"` // nil: no state
	After  *effect.BlobRef `json:"after"`
}

// Change returns the change from one state of a tool to another.
func Change(from, to record.State) (effect.Change, error) {
	c := effect.Change{Scheme: SchemeName, Resource: Resource(to.Session, to.Tool), Kind: what(from, to), Pre: from.Version, Post: to.Version}
	raw, err := canon.Marshal(stateInverse{Before: from.Content, After: to.Content})
	if err != nil {
		return c, err
	}
	c.Inverse = raw
	for _, ref := range []*effect.BlobRef{from.Content, to.Content} {
		if ref != nil {
			c.Blobs = append(c.Blobs, *ref)
		}
	}
	return c, nil
}

func what(from, to record.State) string {
	switch {
	case from.Version == effect.Absent:
		return "create"
	case to.Version == effect.Absent:
		return "delete"
	default:
		return "write"
	}
}

// Scheme returns the scheme that restores states. The reverter writes a
// restored state with the end of the revert; see record.State.
func Scheme(j journal.Journal) revert.Scheme { return scheme{j} }

type scheme struct{ journal journal.Journal }

func (scheme) Name() string { return SchemeName }

func (s scheme) now(ctx context.Context, resource string) (record.State, error) {
	session, tool, ok := parse(resource)
	if !ok {
		return record.State{}, fmt.Errorf("%q names no state: %w", resource, fs.ErrInvalid)
	}
	return Newest(ctx, s.journal, session, tool)
}

// Settle only reads: a state is never half-changed.
func (s scheme) Settle(ctx context.Context, c effect.Change) (effect.Token, error) {
	now, err := s.now(ctx, c.Resource)
	return now.Version, err
}

// Plan plans the revert of each state from what the last change left to what
// the first one found.
func (s scheme) Plan(ctx context.Context, changes []effect.Change, _ journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
	steps, at := []effect.Step{}, map[string]int{}
	first := map[string]effect.Change{}
	for _, c := range changes {
		i, seen := at[c.Resource]
		if !seen {
			i = len(steps)
			at[c.Resource], first[c.Resource] = i, c
			steps = append(steps, effect.Step{})
		}
		of := append(steps[i].Of, c.N)
		step, err := s.plan(ctx, first[c.Resource], c)
		if err != nil {
			return nil, nil, err
		}
		step.Of, steps[i] = of, step
	}
	return steps, nil, nil
}

func (s scheme) plan(ctx context.Context, first, last effect.Change) (effect.Step, error) {
	now, err := s.now(ctx, last.Resource)
	if err != nil {
		return effect.Step{}, err
	}
	var back stateInverse
	if err := canon.Decode(first.Inverse, &back); err != nil {
		return effect.Step{}, fmt.Errorf("the inverse of %s: %w", first.Resource, err)
	}
	to := record.State{Session: now.Session, Tool: now.Tool, Version: first.Pre, Content: back.Before}
	change, err := Change(now, to)
	step := effect.Step{Plan: effect.Conflict, Change: change, Why: "another call changed it later, or the state was erased"}
	switch {
	//mutant:token
	case now.Version.Same(last.Post):
		step.Plan, step.Why = effect.Restored, ""
	//mutant:token
	case now.Version.Same(first.Pre):
		step.Plan, step.Why = effect.Already, ""
	}
	return step, err
}

// Apply checks whether the step still applies; the reverter then writes its
// result.
func (s scheme) Apply(ctx context.Context, step effect.Step, _ journal.ContentStore) effect.Result {
	res := effect.Result{Resource: step.Change.Resource}
	now, err := s.now(ctx, step.Change.Resource)
	res.Now = now.Version
	switch {
	case err != nil:
		res.Outcome, res.Why = effect.Unknown, err.Error()
	//mutant:token
	case now.Version.Same(step.Change.Pre):
		res.Outcome, res.Now = effect.Restored, step.Change.Post
	//mutant:token
	case now.Version.Same(step.Change.Post):
		res.Outcome = effect.Already
	default:
		res.Outcome, res.Why = effect.Conflict, "a call changed it meanwhile"
	}
	return res
}

// State returns the record of a step's result.
func (s scheme) State(step effect.Step) (record.State, error) {
	session, tool, _ := parse(step.Change.Resource)
	var w stateInverse
	err := canon.Decode(step.Change.Inverse, &w)
	return record.State{Session: session, Tool: tool, Version: step.Change.Post, Content: w.After}, err
}

// View returns the versions of states, and their content, for verifiers.
func View(j journal.Journal, changes []effect.Change) verify.ResourceView {
	return &stateView{scheme{j}, changes}
}

type stateView struct {
	scheme
	changes []effect.Change
}

// Version returns the current version.
func (w *stateView) Version(ctx context.Context, resource string) (string, error) {
	now, err := w.now(ctx, resource)
	return string(now.Version), err
}

// Open opens the current content.
func (w *stateView) Open(ctx context.Context, resource string) (io.ReadCloser, error) {
	now, err := w.now(ctx, resource)
	if err != nil {
		return nil, err
	}
	return w.content(ctx, now.Content)
}

// Before opens the content before the call.
func (w *stateView) Before(ctx context.Context, resource string) (io.ReadCloser, error) {
	for _, c := range w.changes {
		if c.Resource == resource && c.Scheme == SchemeName {
			var back stateInverse
			if err := canon.Decode(c.Inverse, &back); err != nil {
				return nil, err
			}
			return w.content(ctx, back.Before)
		}
	}
	return nil, fs.ErrNotExist
}

func (w *stateView) content(ctx context.Context, ref *effect.BlobRef) (io.ReadCloser, error) {
	if ref == nil {
		return nil, fs.ErrNotExist
	}
	return w.journal.OpenContent(ctx, *ref)
}

// Keep stores the content of a state.
func Keep(ctx context.Context, j journal.Journal, session, tool string, content json.RawMessage) (record.State, journal.Blob, error) {
	blob, err := j.StoreContent(ctx, bytes.NewReader(content))
	if err != nil {
		return record.State{}, blob, err
	}
	ref := blob.Ref()
	return record.State{Session: session, Tool: tool, Version: Token(content), Content: &ref}, blob, nil
}
