package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// The keys of the notes that a call records for its revert.
const (
	noteBefore = "before" // the response of the server before the call
	noteBack   = "way_back"
)

// compensation is the call that reverts another call, as data: later edits of
// the configuration do not affect it.
type compensation struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
	Why  string          `json:"why,omitempty"` // why there is none
}

// before calls the entry's readBefore tool, if the entry has one.
func (m mirroredTool) before(ctx context.Context, tc ctxperm.ToolContext, s *upstreamConn, in json.RawMessage) (map[string]canon.Value, error) {
	input, err := canon.Parse(in, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	parts := map[string]canon.Value{"input": input}
	b := m.entry.ReadBefore
	if b == nil {
		return parts, nil
	}
	args, err := binding.FillTemplate(b.Args, parts)
	if err != nil {
		return nil, fmt.Errorf("what is there before the call cannot be asked: %w", err)
	}
	a, err := m.callReadOnly(ctx, b.Tool, args)
	if err != nil {
		return nil, fmt.Errorf("what is there before the call cannot be asked: %w", err)
	}
	if parts["before"], err = canon.Parse(a.Object, canon.DefaultLimits()); err != nil {
		return nil, err
	}
	return parts, tc.Note(ctx, noteBefore, a.Object)
}

// noteCompensation records the compensation of a call.
func (m mirroredTool) noteCompensation(ctx context.Context, tc ctxperm.ToolContext, parts map[string]canon.Value, a wire.Result) (err error) {
	c := m.entry.Compensate
	back := compensation{Tool: c.Tool}
	if parts["output"], err = canon.Parse(a.Object, canon.DefaultLimits()); err != nil {
		return err
	}
	if back.Args, err = binding.FillTemplate(c.Args, parts); err != nil {
		back.Why = "its arguments are not in what the call was given and answered: " + err.Error()
	}
	return tc.Note(ctx, noteBack, back)
}

// revert reverts a call by another call of the same server.
func (m mirroredTool) revert(ctx context.Context, rc tool.RevertContext) error {
	back, err := m.wayBack(rc)
	if err != nil {
		return err
	}
	s, err := m.u.session(ctx)
	if err != nil {
		return err
	}
	if err := m.u.accepted(s, back.Tool); err != nil {
		return fmt.Errorf("the call cannot be taken back: %w", err)
	}
	repeatable := m.entry.Compensate != nil && m.entry.Compensate.Repeatable
	if !repeatable {
		done, err := m.u.g.undone.begin(rc.UndoKey)
		if err != nil || done {
			return err
		}
	}
	a, err := m.u.call(ctx, s, back.Tool, back.Args, callFacts{meta: map[string]any{"remit.dev/undo-key": rc.UndoKey}})
	switch {
	case missed(err) != nil && !repeatable: // the server rejected it unread
		return errors.Join(err, m.u.g.undone.drop(rc.UndoKey))
	case err != nil && !repeatable:
		return fmt.Errorf("%w: %w", revert.ErrRevertUnknown, err)
	case err != nil:
		return err
	case a.Failed:
		return fmt.Errorf("server %s says that %s failed: %s", m.u.cfg.Name, back.Tool, canon.Printable(a.Text, 1<<10))
	case repeatable:
		return nil
	}
	return m.u.g.undone.end(rc.UndoKey)
}

// wayBack returns the compensation that the call recorded. For a call that was
// interrupted before, it computes the compensation from the input.
func (m mirroredTool) wayBack(rc tool.RevertContext) (compensation, error) {
	var back compensation
	if noted := rc.Notes[noteBack]; noted != nil {
		if err := canon.Decode(noted, &back); err != nil {
			return back, err
		}
		if back.Why != "" {
			return back, errors.New(back.Why)
		}
		return back, nil
	}
	parts := map[string]canon.Value{}
	for name, text := range map[string]json.RawMessage{"input": rc.Input, "output": rc.Output, "before": rc.Notes[noteBefore]} {
		if v, err := canon.Parse(text, canon.DefaultLimits()); err == nil && v.Kind() != canon.Null {
			parts[name] = v
		}
	}
	args, err := binding.FillTemplate(m.entry.Compensate.Args, parts)
	if err != nil {
		return back, fmt.Errorf("the answer of the call is lost, and with it how to take it back: %w", err)
	}
	return compensation{Tool: m.entry.Compensate.Tool, Args: args}, nil
}

// revertAttempts records which compensations were sent to a server. The gateway
// does not send one again if it does not know whether the first arrived.
type revertAttempts struct {
	folder string // empty: only in memory

	mu   sync.Mutex // never held across a wait
	seen map[string]bool
}

func openAttempts(state string) (*revertAttempts, error) {
	a := &revertAttempts{seen: map[string]bool{}}
	if state == "" {
		return a, nil
	}
	a.folder = filepath.Join(state, "gateway-undo")
	return a, os.MkdirAll(a.folder, 0o700)
}

func (a *revertAttempts) path(key string) string {
	sum := string(canon.SumBytes([]byte(key)))
	return filepath.Join(a.folder, strings.TrimPrefix(sum, "sha256:"))
}

// begin records that a compensation is about to be sent. Done reports that it
// was sent and got a response. If it was sent and got none, begin returns an
// error, as the effect is unknown.
func (a *revertAttempts) begin(key string) (done bool, err error) {
	a.mu.Lock()
	ended, begun := a.seen[key]
	a.mu.Unlock()
	if !begun && a.folder != "" {
		raw, err := os.ReadFile(a.path(key))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		begun, ended = err == nil, string(raw) == "done\n"
	}
	switch {
	case ended:
		return true, nil
	case begun:
		return false, fmt.Errorf("%w: it was sent to the server before, and no answer came; look at what the server has", revert.ErrRevertUnknown)
	}
	return false, a.write(key, false)
}

func (a *revertAttempts) end(key string) error { return a.write(key, true) }

// drop removes the record of a compensation that did not reach the server.
func (a *revertAttempts) drop(key string) error {
	a.mu.Lock()
	delete(a.seen, key)
	a.mu.Unlock()
	if a.folder == "" {
		return nil
	}
	return os.Remove(a.path(key))
}

func (a *revertAttempts) write(key string, done bool) error {
	a.mu.Lock()
	a.seen[key] = done
	a.mu.Unlock()
	if a.folder == "" {
		return nil
	}
	f, err := os.OpenFile(a.path(key), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if done {
		_, err = f.WriteString("done\n")
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if dir, err := os.Open(a.folder); err == nil {
		_ = dir.Sync() // if the system cannot sync folders, the record can be lost and a compensation sent twice
		_ = dir.Close()
	}
	return nil
}
