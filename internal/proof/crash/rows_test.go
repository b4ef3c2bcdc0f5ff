package crash_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// work is the open transaction of a call. Its changes are in memory until the
// call is finished, and are then applied with the key of the call, in one step.
type work struct {
	remote *remote
	call   *callstate.Call
	will   map[string]string // empty: the row is deleted
}

// writeRows is the code of a tool that changes rows.
func writeRows(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
	call := handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]().Call(tc)
	w := &work{remote: remoteOf(ctx), call: call, will: map[string]string{"1": call.Config().ID, "2": "", "3": "three"}}
	return "changed", call.Join(w, true)
}

const rowScheme = "rows"

func rowToken(value string) effect.Token {
	if value == "" {
		return effect.Absent
	}
	return effect.Token("v:" + value)
}

func rowOf(resource string) string { return strings.TrimPrefix(resource, "db://main/stock/") }

func (w *work) Prepare(ctx context.Context) error {
	key, err := json.Marshal(w.call.Config().Key)
	if err != nil {
		return err
	}
	now := w.remote.table()
	var changes []effect.Change
	for _, row := range []string{"1", "2", "3"} {
		if now[row] == w.will[row] {
			continue
		}
		changes = append(changes, effect.Change{
			Scheme: rowScheme, Resource: "db://main/stock/" + row, Kind: "update", Pre: rowToken(now[row]), Post: rowToken(w.will[row]), Inverse: key,
		})
	}
	_, err = w.call.Intend(ctx, changes, nil)
	return err
}

func (w *work) Finish(context.Context) error {
	w.remote.change("commit rows", func() {
		for row, value := range w.will {
			w.remote.setRow(row, rowToken(value))
		}
		w.remote.ops[w.call.Config().Key] = true
	})
	return nil
}

func (w *work) Abort(context.Context) {}

func (r *remote) setRow(row string, to effect.Token) {
	delete(r.rows, row)
	if value, there := strings.CutPrefix(string(to), "v:"); there {
		r.rows[row] = value
	}
}

// rowsBack reverts changes of rows.
type rowsBack struct{ remote *remote }

var _ revert.AtomicScheme = rowsBack{}

func (rowsBack) Name() string { return rowScheme }

func (s rowsBack) Settle(_ context.Context, c effect.Change) (effect.Token, error) {
	return rowToken(s.remote.table()[rowOf(c.Resource)]), nil
}

func (s rowsBack) Versions(ctx context.Context, changes []effect.Change) (now []effect.Token, err error) {
	for _, c := range changes {
		is, err := s.Settle(ctx, c)
		if err != nil {
			return nil, err
		}
		now = append(now, is)
	}
	return now, nil
}

// TookEffect looks up the key that the transaction of the call wrote.
func (s rowsBack) TookEffect(_ context.Context, changes []effect.Change) (took, known bool, err error) {
	var key string
	if err := json.Unmarshal(changes[0].Inverse, &key); err != nil {
		return false, false, err
	}
	s.remote.mu.Lock()
	defer s.remote.mu.Unlock()
	return s.remote.ops[key], true, nil
}

func (s rowsBack) Plan(ctx context.Context, changes []effect.Change, _ journal.ContentStore) (steps []effect.Step, _ []journal.Blob, err error) {
	now, err := s.Versions(ctx, changes)
	if err != nil {
		return nil, nil, err
	}
	for i, c := range slices.Backward(changes) {
		step := effect.Step{Of: []int{c.N}, Plan: effect.Conflict, Change: effect.Change{
			Scheme: rowScheme, Resource: c.Resource, Kind: "update", Pre: now[i], Post: c.Pre, Inverse: json.RawMessage(`""`),
		}}
		switch {
		case now[i].Same(c.Pre):
			step.Plan = effect.Already
		case now[i].Same(c.Post):
			step.Plan = effect.Restored
		}
		steps = append(steps, step)
	}
	return steps, nil, nil
}

func (s rowsBack) Apply(ctx context.Context, step effect.Step, keep journal.ContentStore) effect.Result {
	return s.ApplyAll(ctx, []effect.Step{step}, keep)[0]
}

// ApplyAll changes all rows in one step, each only if it has the planned
// version.
func (s rowsBack) ApplyAll(_ context.Context, steps []effect.Step, _ journal.ContentStore) (out []effect.Result) {
	s.remote.change("put rows back", func() {
		for _, step := range steps {
			row := rowOf(step.Change.Resource)
			res := effect.Result{Resource: step.Change.Resource, Outcome: effect.Conflict, Now: rowToken(s.remote.rows[row])}
			if res.Now.Same(step.Change.Pre) {
				s.remote.setRow(row, step.Change.Post)
				res.Outcome, res.Now = effect.Restored, step.Change.Post
			}
			out = append(out, res)
		}
	})
	return out
}

func rowTool() (tool.Tool, error) {
	return tool.CreateWith("rows", "Changes, adds and removes rows.", rowNeeds, writeRows, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
}
