package revert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// kvStore is a store of values with its own scheme: the smallest set of resources
// with revertible effects.
type kvStore struct {
	values map[string]string
}

func (w *kvStore) token(key string) effect.Token {
	v, ok := w.values[key]
	if !ok {
		return effect.Absent
	}
	return effect.Token("v:" + v)
}

func (w *kvStore) set(key string, t effect.Token) {
	if t == effect.Absent {
		delete(w.values, key)
		return
	}
	w.values[key] = string(t[2:])
}

func (w *kvStore) Name() string { return "kv" }

func (w *kvStore) Settle(_ context.Context, c effect.Change) (effect.Token, error) {
	return w.token(c.Resource), nil
}

func (w *kvStore) Plan(_ context.Context, changes []effect.Change, _ journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
	var steps []effect.Step
	for i := len(changes) - 1; i >= 0; i-- {
		last := changes[i]
		if slices.ContainsFunc(steps, func(s effect.Step) bool { return s.Change.Resource == last.Resource }) {
			continue
		}
		first := changes[slices.IndexFunc(changes, func(c effect.Change) bool { return c.Resource == last.Resource })]
		now := w.token(last.Resource)
		s := effect.Step{Of: []int{last.N}, Change: effect.Change{Scheme: "kv", Resource: last.Resource, Kind: "restore", Pre: now, Post: first.Pre}}
		switch {
		case now.Same(last.Post):
			s.Plan = effect.Restored
		case now.Same(first.Pre):
			s.Plan = effect.Already
		default:
			s.Plan, s.Why = effect.Conflict, "changed by somebody else"
		}
		steps = append(steps, s)
	}
	return steps, nil, nil
}

func (w *kvStore) Apply(_ context.Context, s effect.Step, _ journal.ContentStore) effect.Result {
	r := effect.Result{Resource: s.Change.Resource, Outcome: effect.Restored, Now: s.Change.Post}
	if now := w.token(s.Change.Resource); !now.Same(s.Change.Pre) {
		return effect.Result{Resource: s.Change.Resource, Outcome: effect.Conflict, Now: now, Why: "changed meanwhile"}
	}
	w.set(s.Change.Resource, s.Change.Post)
	return r
}

// process is one run of a program: its own opening of the journal on a store
// that survives it.
type process struct {
	host         *hosttest.Host
	journal      journal.Journal
	reverter     *revert.Reverter
	store        *kvStore
	toolReverter revert.ToolReverter
	prober       revert.Prober
	calls        int
}

func newProcess(open func() journal.Journal, w *kvStore, seed uint64) *process {
	p := &process{host: hosttest.New(seed), journal: open(), store: w}
	p.reverter = &revert.Reverter{Journal: p.journal, Host: p.host, EnvironmentFor: func(context.Context, string) (revert.Environment, error) {
		return revert.Environment{Schemes: []revert.Scheme{w}, ToolReverter: p.toolReverter, Prober: p.prober}, nil
	}}
	return p
}

var errProcessEnded = errors.New("the process is dead")

// crashAt makes every scheduling point from the n-th on fail, as in a killed
// process.
func (p *process) crashAt(n int) {
	seen := 0
	p.host.OnPoint = func(string) error {
		seen++
		if seen > n {
			return errProcessEnded
		}
		return nil
	}
}

func (p *process) points(run func()) int {
	seen := 0
	p.host.OnPoint = func(string) error { seen++; return nil }
	run()
	p.host.OnPoint = nil
	return seen
}

// endProcess ends the process: its owner is dead.
func (p *process) endProcess(t *testing.T) { require.NoError(t, p.journal.Close()) }

func (p *process) begin(ctx context.Context) (revert.Recorder, error) {
	id := host.NewID(p.host, "t_")
	rec := revert.NewRecorder(p.journal, p.host, "s_1").In(id)
	return rec, rec.Write(ctx, revert.Write{
		Records: []revert.CallRecord{{Body: &record.Begun{Owner: p.journal.Owner()}}},
		Take:    journal.OwnerChange{To: journal.Ownership{Txn: id, Owner: p.journal.Owner()}},
	})
}

// write is one effect of a call: a key, and its value or nil to remove it.
type write struct {
	key   string
	value any
}

type callSpec struct {
	class       effect.Class
	confinement string
	writes      []write
}

// call runs a call in the order of the pipeline.
func (p *process) call(ctx context.Context, rec revert.Recorder, spec callSpec) (id string, err error) {
	p.calls++
	id = fmt.Sprintf("c_%s_%d", rec.Txn(), p.calls)
	started := &record.Started{
		Sequence: p.calls, Key: "key-" + id, Tool: record.ToolRef{Name: "put"}, Class: spec.class, Confinement: spec.confinement,
		Declared: true, Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`),
	}
	lines := []revert.CallRecord{{Call: id, Body: started}}
	for i, w := range spec.writes {
		ch := effect.Change{N: i + 1, Scheme: "kv", Resource: w.key, Kind: "write", Pre: p.store.token(w.key), Post: effect.Absent}
		if w.value != nil {
			ch.Post = effect.Token(fmt.Sprint("v:", w.value))
		}
		lines = append(lines, revert.CallRecord{Call: id, Body: &record.Changed{Change: ch}})
		if err := rec.Write(ctx, revert.Write{Records: lines, Claims: []string{w.key}, Durable: true}); err != nil {
			return id, err
		}
		lines = nil
		if err := p.host.Point(ctx, "world.set"); err != nil {
			return id, err
		}
		p.store.set(w.key, ch.Post)
	}
	lines = append(lines, revert.CallRecord{Call: id, Body: &record.Done{Output: json.RawMessage(`null`)}})
	return id, rec.Write(ctx, revert.Write{Records: lines, Durable: true})
}

func (p *process) commit(ctx context.Context, rec revert.Recorder) error {
	return rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: &record.Committed{}}}, End: true, Durable: true})
}

func put(writes ...write) callSpec {
	return callSpec{class: effect.Reversible, confinement: "handles", writes: writes}
}

// revert reverts a transaction as its owner or as another process.
func (p *process) revert(ctx context.Context, id string) (revert.Report, error) {
	t, err := revert.Load(ctx, p.journal, id)
	if err == nil && t.End == "" && t.Owner == p.journal.Owner() {
		return p.reverter.Abort(ctx, id, revert.Options{})
	}
	return p.reverter.Revert(ctx, id, revert.Options{})
}
