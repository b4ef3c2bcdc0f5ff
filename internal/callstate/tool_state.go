package callstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/toolstate"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ToolState is the state that a stateful tool keeps for the session, while one
// call works on it. The call holds its lock, and the transaction its claim, so
// that no other call changes it before the end of this one.
type ToolState struct {
	call *Call
	tool string
	mine *host.Lock // serializes the parts of one call

	// Under the call's lock:
	read    bool
	was     record.State    // as the call found it
	base    json.RawMessage // with its content; nil: nothing
	left    []partState     // states that the parts of the call have left, in order
	gone    int             // how often some of them were reverted
	seen    int             // value of gone when the current part took the state
	content json.RawMessage // content that the current part found
}

// partState is the state that one part of a call, or the call, has left.
type partState struct {
	n       int    // unique among the states of the call's parts
	by      string // the prefix of the part
	state   record.State
	blob    journal.Blob
	content json.RawMessage
}

// Cell locks the state of a tool and returns it. Content is its current value.
// The caller must Leave.
func (c *Call) Cell(ctx context.Context, tool string) (*ToolState, error) {
	op, err := c.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer op.Leave()
	cell := c.cell(tool)
	if err := cell.mine.Lock(ctx); err != nil {
		return nil, err
	}
	if err := cell.look(ctx); err != nil {
		cell.mine.Unlock()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cell.call, cell.seen, cell.content = c, cell.gone, cell.base
	if n := len(cell.left); n > 0 {
		cell.content = cell.left[n-1].content
	}
	return cell, nil
}

func (c *Call) cell(tool string) *ToolState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cells == nil {
		c.cells = map[string]*ToolState{}
	}
	if c.cells[tool] == nil {
		c.cells[tool] = &ToolState{call: c, tool: tool, mine: host.NewLock(c.cfg.Recorder.Host(), "line.cell")}
	}
	return c.cells[tool]
}

// look reads the state, after the call has locked it.
func (l *ToolState) look(ctx context.Context) error {
	l.call.mu.Lock()
	read := l.read
	l.call.mu.Unlock()
	if read {
		return nil
	}
	cfg := l.call.cfg
	resource := toolstate.Resource(cfg.Recorder.Session(), l.tool)
	release, err := cfg.Locks.Take(ctx, cfg.ID, resource)
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
	was, base, err := toolstate.Read(ctx, cfg.Recorder.Journal(), cfg.Recorder.Session(), l.tool)
	l.call.mu.Lock()
	defer l.call.mu.Unlock()
	l.was, l.base, l.read = was, base, err == nil
	return err
}

// Content returns the tool's state; nil: nothing yet.
func (l *ToolState) Content() json.RawMessage { return slices.Clone(l.content) }

var (
	errSecretState  = errors.New("the state would hold the value of a secret: keep its name instead") // same text as for a note
	errUndermined   = errors.New("the state came from another part of the call, which was reverted meanwhile")
	errStateOverlay = fmt.Errorf("%w: another part of the call changed a state after it", ErrNotReverted)
)

// Set sets the tool's state after the call.
func (l *ToolState) Set(ctx context.Context, content json.RawMessage) error {
	op, err := l.call.Enter(ctx)
	if err != nil {
		return err
	}
	defer op.Leave()
	cfg := l.call.cfg
	if known := SecretsOf(cfg.Drivers); !known.None() && known.Scrub(string(content)) != string(content) {
		return errSecretState
	}
	next, blob, err := toolstate.Keep(ctx, cfg.Recorder.Journal(), cfg.Recorder.Session(), l.tool, content)
	if err != nil {
		return err
	}
	l.call.mu.Lock()
	defer l.call.mu.Unlock()
	if l.gone != l.seen {
		return errUndermined
	}
	l.call.lefts++
	l.left = append(l.left, partState{l.call.lefts, l.call.prefix, next, blob, content})
	return nil
}

// forget removes the states that a part and its nested parts have left since
// then. It refuses if another part has left a state on top, because that was
// derived from them.
func (c *Call) forget(since int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cell := range c.cells {
		own := func(l partState) bool { return l.n > since && strings.HasPrefix(l.by, c.prefix) }
		first := slices.IndexFunc(cell.left, own)
		if first < 0 {
			continue
		}
		if slices.ContainsFunc(cell.left[first:], func(l partState) bool { return !own(l) }) {
			return errStateOverlay
		}
		cell.left = cell.left[:first]
		cell.gone++
	}
	return nil
}

// Leave lets another part of the call work on the state.
func (l *ToolState) Leave() { l.mine.Unlock() }

// States returns the records of the new states. The caller writes them together
// with the record that ends the call, because only then its changes are
// complete. Nothing is written yet.
func (c *Call) States() (revert.Write, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var w revert.Write
	if len(c.cells) == 0 {
		return w, nil
	}
	for _, tool := range slices.Sorted(maps.Keys(c.cells)) {
		l := c.cells[tool]
		if len(l.left) == 0 {
			continue
		}
		last := l.left[len(l.left)-1]
		//mutant:token
		if last.state.Version.Same(l.was.Version) {
			continue
		}
		change, err := toolstate.Change(l.was, last.state)
		if err != nil {
			return w, err
		}
		change.N = len(c.changes) + 1
		c.changes, c.of = append(c.changes, change), append(c.of, "")
		last.state.Of = record.CallRef{Txn: c.cfg.Recorder.Txn(), Call: c.cfg.ID}
		w.Records = append(w.Records,
			revert.CallRecord{Call: c.cfg.ID, Body: &record.Changed{Change: change}},
			revert.CallRecord{Call: last.state.ID(c.cfg.Recorder.Host()), Body: &last.state})
		w.Blobs, w.Claims = append(w.Blobs, last.blob), append(w.Claims, change.Resource)
	}
	return w, nil
}
