package revert

import (
	"context"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/internal/host"
)

// State says what a stateful tool holds for one session from here on. The newest one of
// a tool and a session counts, in whichever stream. One that a call leaves stands between
// its Changed and its Done, in the same step; one that an undo or a redo comes to stands
// before that Reverted, in the same step. Its header names no call but the state itself:
// prune drops the records of a call, and the session goes on.
type State struct {
	Session string   `json:"session"`
	Tool    string   `json:"tool"`
	Of      CallRef  `json:"of"`                // the call that left it, was taken back to it or was brought back to it
	Version Token    `json:"version"`           // Absent: nothing, the next call begins anew
	Content *BlobRef `json:"content,omitempty"` // canonical JSON
}

// ID makes the id of a state's record. It names the tool, so that an erased one still says
// whose it was.
func (s State) ID(h host.Host) string { return host.NewID(h, statePrefix+s.Tool+"_") }

// IsOf reports whether a record's id is that of a state of the same tool.
func (s State) IsOf(id string) bool { return stateTool(id) == s.Tool }

const statePrefix = "v_"

// stateTool is the tool that the id of a state's record names.
func stateTool(id string) string {
	name := strings.TrimPrefix(id, statePrefix)
	return name[:max(strings.LastIndexByte(name, '_'), 0)]
}

// journaled is a Scheme whose world is the journal itself: Apply only looks, and what a
// step that it calls Restored comes to is written with the end of the undo, so that it
// is there exactly when that is.
type journaled interface {
	Scheme
	State(s Step) (State, error)
}

// states are the records of what the steps of an undo have restored on the journal.
func (r *Reverter) states(w Ways, c *Call, steps []Step, results []Result) (lines []Line) {
	for i, s := range steps {
		scheme, _ := w.scheme(s.Change.Scheme)
		j, ok := scheme.(journaled)
		if !ok || results[i].Outcome != Restored {
			continue
		}
		b, err := j.State(s)
		if err != nil { // nobody is told then that it is there again
			results[i].Outcome, results[i].Why = UndoFailed, err.Error()
			continue
		}
		b.Of = c.Ref
		lines = append(lines, Line{Call: b.ID(r.Host), Body: &b})
	}
	return lines
}

// stateRef names a record of what a tool holds.
type stateRef struct {
	txn, id string
	content BlobRef
}

// applyState folds one, of the transaction's own stream or of one that worked on it.
func (t *Txn) applyState(r Record, b *State) error {
	if b.Session != r.Session || b.Tool != stateTool(r.Call) || !b.Version.Known() {
		return fmt.Errorf("state %s is of tool %q and session %q, with the version %q", r.Call, b.Tool, b.Session, b.Version)
	}
	if c, ok := t.byID[b.Of.Call]; ok && b.Of.Txn == t.ID && b.Content != nil {
		c.states = append(c.states, stateRef{r.Txn, r.Call, *b.Content})
	}
	return nil
}

// addStates adds what a call left in the state of its tool: a session whose newest state
// that is begins anew.
func (e *erasing) addStates(c *Call) {
	for _, s := range c.states {
		e.names([]BlobRef{s.content})
		e.add(s.txn, s.id, &Erased{Tool: c.Tool})
	}
}

// sweep erases the states that are past retention, but those that sessions go on from.
// Nothing reads any other one: what an undo needs, the records of its calls name.
func (r *Reverter) sweep(ctx context.Context, limit int64) error {
	e := &erasing{cause: eraseRetention}
	newest := map[[2]string]Entry{}
	old := func(s Entry) error {
		if s.Erased != "" || s.Pos > limit {
			return nil
		}
		rec, err := Unseal(s)
		if err != nil {
			return err
		}
		e.names(blobsOf(rec.Body))
		e.add(s.Header.Txn, s.Header.Call, &Erased{Tool: ToolRef{Name: stateTool(s.Header.Call)}})
		return nil
	}
	for s, err := range r.Journal.Entries(ctx, Query{Kinds: []Kind{KindState}}) {
		if err != nil {
			return err
		}
		cell := [2]string{s.Header.Session, stateTool(s.Header.Call)}
		if before, ok := newest[cell]; ok {
			if err := old(before); err != nil {
				return err
			}
		}
		newest[cell] = s
	}
	if len(e.calls) == 0 {
		return nil
	}
	return r.writeErased(ctx, e, "", nil, nil)
}
