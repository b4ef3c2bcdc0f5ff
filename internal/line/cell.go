package line

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/state"
	"github.com/remit-dev/remit/revert"
)

// Cell is what a stateful tool holds for the session while one call works on it. The
// call has the turn for it, and its transaction the claim, so that nobody else changes
// it before the call has ended.
type Cell struct {
	call    *Call
	tool    string
	mine    *host.Lock // the parts of one call, one after the other
	read    bool
	was     revert.State    // as the call found it
	content json.RawMessage // as the call has left it so far; nil: nothing
	next    *revert.State   // nil: the call has left nothing yet
	blob    revert.Blob     // of next
	by      string          // the prefix of the part that left it
}

// Cell waits for its turn to work on the state of a tool, and takes it. What was there
// before it is Content. The caller must Leave.
func (c *Call) Cell(ctx context.Context, tool string) (*Cell, error) {
	op, err := c.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer op.Leave()
	cell := c.cell(tool)
	if err := cell.mine.Lock(ctx); err != nil {
		return nil, err
	}
	cell.call = c
	if err := cell.look(ctx); err != nil {
		cell.mine.Unlock()
		return nil, err
	}
	return cell, nil
}

func (c *Call) cell(tool string) *Cell {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cells == nil {
		c.cells = map[string]*Cell{}
	}
	if c.cells[tool] == nil {
		c.cells[tool] = &Cell{call: c, tool: tool, mine: host.NewLock(c.cfg.Recorder.Host(), "line.cell")}
	}
	return c.cells[tool]
}

// look reads the state, once it is the call's.
func (l *Cell) look(ctx context.Context) error {
	if l.read {
		return nil
	}
	cfg := l.call.cfg
	resource := state.Resource(cfg.Recorder.Session(), l.tool)
	release, err := cfg.Turns.Take(ctx, cfg.ID, resource)
	if err != nil {
		return err
	}
	defer release()
	if err := l.call.Await(ctx, resource); err != nil {
		return err
	}
	if err := l.call.Claim(ctx, resource); err != nil {
		return err
	}
	if err := cfg.Recorder.Host().Point(ctx, "line.state"); err != nil {
		return err
	}
	l.was, l.content, err = state.Read(ctx, cfg.Recorder.Journal(), cfg.Recorder.Session(), l.tool)
	l.read = err == nil
	return err
}

// Content is what the tool holds; nil: nothing yet.
func (l *Cell) Content() json.RawMessage { return slices.Clone(l.content) }

// errSecretState is like that of a note.
var errSecretState = errors.New("the state would hold the value of a secret: keep its name instead")

// Set says what the tool holds once the call is done.
func (l *Cell) Set(ctx context.Context, content json.RawMessage) error {
	op, err := l.call.Enter(ctx)
	if err != nil {
		return err
	}
	defer op.Leave()
	cfg := l.call.cfg
	if known := SecretsOf(cfg.Drivers); !known.None() && known.Scrub(string(content)) != string(content) {
		return errSecretState
	}
	next, blob, err := state.Keep(ctx, cfg.Recorder.Journal(), cfg.Recorder.Session(), l.tool, content)
	if err != nil {
		return err
	}
	l.call.mu.Lock()
	defer l.call.mu.Unlock()
	l.next, l.blob, l.content, l.by = &next, blob, content, l.call.prefix
	return nil
}

// Leave lets another part of the call work on the state.
func (l *Cell) Leave() { l.mine.Unlock() }

// States are the records with which what its tools hold changes, in the step of the
// record that the call is done: its changes are complete then. Nothing is written yet.
func (c *Call) States() (revert.Write, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var w revert.Write
	for _, tool := range slices.Sorted(maps.Keys(c.cells)) {
		l := c.cells[tool]
		//mutant:token
		if l.next == nil || l.next.Version.Same(l.was.Version) {
			continue
		}
		change, err := state.Change(l.was, *l.next)
		if err != nil {
			return w, err
		}
		change.N = len(c.changes) + 1
		c.changes, c.of = append(c.changes, change), append(c.of, "")
		l.next.Of = revert.CallRef{Txn: c.cfg.Recorder.Txn(), Call: c.cfg.ID}
		w.Lines = append(w.Lines,
			revert.Line{Call: c.cfg.ID, Body: &revert.Changed{Change: change}},
			revert.Line{Call: l.next.ID(c.cfg.Recorder.Host()), Body: l.next})
		w.Blobs, w.Claims = append(w.Blobs, l.blob), append(w.Claims, change.Resource)
	}
	return w, nil
}
