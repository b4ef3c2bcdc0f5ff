package revert_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// valueStore is a store of values whose scheme works in steps, like that of files.
// It stores the current value with the journal, moves it aside, and only then
// writes the earlier value. After a failure in between, the value stays moved
// aside until that step is settled.
type valueStore struct {
	kvStore
	lifted map[string]string // by stage
	stages int
}

func newValueStore() *valueStore {
	return &valueStore{kvStore: kvStore{before()}, lifted: map[string]string{}}
}

// valueStoreView is the view that one process has of a shelf.
type valueStoreView struct {
	*valueStore
	*faults
}

// valueInverse is the inverse of a change: the stage that it moves to, and the content
// that it writes.
type valueInverse struct {
	Stage string          `json:"stage"`
	Will  *effect.BlobRef `json:"will,omitempty"` // content before the change; empty: none
	Had   *effect.BlobRef `json:"had,omitempty"`  // for a counter-change: the content that it writes
}

// keepNow stores the current content, for a change that displaces it.
func (s valueStoreView) keepNow(ctx context.Context, key string, keep journal.ContentStore) (*effect.BlobRef, []journal.Blob, error) {
	v, ok := s.values[key]
	if !ok {
		return nil, nil, nil
	}
	b, err := keep.StoreContent(ctx, strings.NewReader(v))
	if err != nil {
		return nil, nil, err
	}
	ref := b.Ref()
	return &ref, []journal.Blob{b}, nil
}

func (s valueStoreView) change(n int, key, kind string, pre, post effect.Token, will, had *effect.BlobRef) effect.Change {
	s.stages++
	inverse, err := json.Marshal(valueInverse{fmt.Sprint("stage", s.stages), will, had})
	if err != nil {
		panic(err)
	}
	c := effect.Change{N: n, Scheme: "kv", Resource: key, Kind: kind, Pre: pre, Post: post, Inverse: inverse}
	if will != nil {
		c.Blobs = []effect.BlobRef{*will}
	}
	return c
}

func valueInverseOf(c effect.Change) (w valueInverse) {
	if err := json.Unmarshal(c.Inverse, &w); err != nil {
		panic(err)
	}
	return w
}

func (s valueStoreView) Settle(_ context.Context, c effect.Change) (now effect.Token, err error) {
	return now, s.try("settle", func() error {
		stage := valueInverseOf(c).Stage
		if v, half := s.lifted[stage]; half {
			delete(s.lifted, stage)
			s.values[c.Resource] = v
		}
		now = s.token(c.Resource)
		return nil
	})
}

func (s valueStoreView) Plan(ctx context.Context, changes []effect.Change, keep journal.ContentStore) (steps []effect.Step, blobs []journal.Blob, err error) {
	if err := s.try("plan", func() error { return nil }); err != nil {
		return nil, nil, err
	}
	for _, c := range slices.Backward(changes) {
		if slices.ContainsFunc(steps, func(st effect.Step) bool { return st.Change.Resource == c.Resource }) {
			continue
		}
		first := changes[slices.IndexFunc(changes, func(o effect.Change) bool { return o.Resource == c.Resource })]
		now := s.token(c.Resource)
		step := effect.Step{Of: []int{c.N}, Change: effect.Change{Scheme: "kv", Resource: c.Resource, Pre: now}}
		switch {
		case now.Same(first.Pre):
			step.Plan = effect.Already
		case !now.Same(c.Post):
			step.Plan, step.Why = effect.Conflict, "changed by somebody else"
		default:
			will, kept, err := s.keepNow(ctx, c.Resource, keep)
			if err != nil {
				return nil, nil, err
			}
			step.Plan, blobs = effect.Restored, append(blobs, kept...)
			step.Change = s.change(0, c.Resource, "restore", now, first.Pre, will, valueInverseOf(first).Will)
		}
		steps = append(steps, step)
	}
	return steps, blobs, nil
}

func (s valueStoreView) Apply(ctx context.Context, step effect.Step, keep journal.ContentStore) effect.Result {
	key := step.Change.Resource
	res := effect.Result{Resource: key, Outcome: effect.Failed}
	if now := s.token(key); !now.Same(step.Change.Pre) {
		return effect.Result{Resource: key, Outcome: effect.Conflict, Now: now, Why: "changed meanwhile"}
	}
	w := valueInverseOf(step.Change)
	content, err := s.fetch(ctx, w.Had, keep)
	if err != nil {
		res.Why = err.Error()
		return res
	}
	if v, there := s.values[key]; there {
		s.lifted[w.Stage] = v
		delete(s.values, key)
	}
	if err := s.try("put", func() error {
		if w.Had != nil {
			s.values[key] = content
		}
		return nil
	}); err != nil {
		res.Outcome, res.Why = effect.Unknown, err.Error()
		return res
	}
	delete(s.lifted, w.Stage)
	res.Outcome, res.Now = effect.Restored, step.Change.Post
	return res
}

func (s valueStoreView) fetch(ctx context.Context, ref *effect.BlobRef, keep journal.ContentStore) (string, error) {
	if ref == nil {
		return "", nil
	}
	content, err := keep.OpenContent(ctx, *ref)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	_, err = io.Copy(&text, content)
	return text.String(), errors.Join(err, content.Close())
}
