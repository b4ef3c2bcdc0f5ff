package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// part is a transaction or a call to revert, limited to some resources if there
// are any.
type part struct {
	id        string
	resources []string
	over      []passedOver
}

// undoTarget selects what remit revert reverts.
type undoTarget struct {
	target
	count int      // with last: the newest transactions
	files []string // resources
	agent *cli.Agent
}

// foreignTxns returns the transactions that an agent must not revert. It
// returns none for a person.
func foreignTxns(ctx context.Context, rt *agent.Runtime, by *cli.Agent) (map[string]bool, error) {
	all := map[string]bool{}
	if by == nil {
		return all, nil
	}
	return all, state.EachTxn(ctx, rt.Journal(), func(id string) error {
		t, err := rt.Load(ctx, id)
		if err == nil && !by.Owns(t.Session) {
			all[id] = true
		}
		return err
	})
}

// parts returns what to revert, newest first. A part is found after the earlier
// ones are reverted, so that it sees what they left.
func (u undoTarget) parts(ctx context.Context, rt *agent.Runtime, revertPart func(part) error) error {
	foreign, err := foreignTxns(ctx, rt, u.agent)
	if err != nil {
		return err
	}
	switch {
	case !u.last:
		ids, err := ResolveTxns(ctx, rt.Journal(), u.id)
		var over []passedOver
		if err == nil && len(ids) > 1 {
			ids, over, err = endedFirst(ctx, rt, ids)
		}
		for _, id := range ids {
			if err == nil {
				err, over = revertPart(part{id: id, resources: u.files, over: over}), nil
			}
		}
		return err
	case len(u.files) > 0:
		return u.byFile(ctx, rt, foreign, revertPart)
	}
	done := foreign
	for i := range u.count {
		id, over, err := lastTxn(ctx, rt, done, nil)
		if err != nil || id == "" && i > 0 {
			return err
		}
		all, err := ofPrompt(ctx, rt, id)
		for _, one := range all {
			if err == nil {
				err, over, done[one] = revertPart(part{id: one, over: over}), nil, true
			}
		}
		if err != nil || id == "" {
			return err
		}
	}
	return nil
}

// endedFirst sorts the transactions of a prompt: those that a running process
// still follows come last, because a revert of them fails. It leaves out calls
// that only wait for an approval, unless there is nothing else.
func endedFirst(ctx context.Context, rt *agent.Runtime, ids []string) (ended []string, over []passedOver, err error) {
	var follows, waits []string
	for _, id := range ids {
		t, err := rt.Load(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		alive := false
		if t.End == "" {
			if alive, err = journal.LooksAlive(ctx, rt.Journal(), t.Owner); err != nil {
				return nil, nil, err
			}
		}
		switch pending := func(c *revert.Call) bool { return c.Phase == revert.PhasePending }; {
		case t.End == "" && len(t.Calls) > 0 && !slices.ContainsFunc(t.Calls, func(c *revert.Call) bool { return !pending(c) }):
			waits, over = append(waits, id), append(over, passedOverCalls(t)...)
		case alive:
			follows = append(follows, id)
		default:
			ended = append(ended, id)
		}
	}
	if len(ended)+len(follows) == 0 {
		return waits, nil, nil
	}
	return append(ended, follows...), over, nil
}

// ofPrompt returns a transaction and the others of its prompt that can be
// reverted, newest first. A prompt has several if a call waited for an approval
// or ran in the background.
func ofPrompt(ctx context.Context, rt *agent.Runtime, id string) ([]string, error) {
	if id == "" {
		return []string{""}, nil
	}
	p, err := revert.PromptOf(ctx, rt.Journal(), id)
	if err != nil || p == nil {
		return []string{id}, err
	}
	all, err := revert.FindPrompt(ctx, rt.Journal(), p.ID)
	if errors.Is(err, revert.ErrAmbiguous) { // of two clients
		return []string{id}, nil
	}
	this, failed := rt.Load(ctx, id)
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	var kept []string
	for _, one := range all {
		t, failed := rt.Load(ctx, one)
		if err = errors.Join(err, failed); failed != nil || t.Session != this.Session {
			continue
		}
		left := slices.ContainsFunc(t.EffectiveCalls(), func(c *revert.Call) bool { return !cannotRevert(c) })
		if one == id || left && t.End != "" {
			kept = append(kept, one)
		}
	}
	return kept, err
}

// byFile reverts each file in the newest transaction that changed it. Files of
// one transaction are reverted together.
func (u undoTarget) byFile(ctx context.Context, rt *agent.Runtime, foreign map[string]bool, revertPart func(part) error) error {
	var all []part
	for _, file := range u.files {
		id, _, err := lastTxn(ctx, rt, foreign, []string{file})
		if err != nil {
			return err
		}
		if id == "" {
			return &cli.Problem{Code: cli.ExitUsage, What: "nothing was reverted", Why: "no call changed " + file + ", or all its changes are reverted"}
		}
		if i := slices.IndexFunc(all, func(p part) bool { return p.id == id }); i >= 0 {
			all[i].resources = append(all[i].resources, file)
			continue
		}
		all = append(all, part{id: id, resources: []string{file}})
	}
	for _, p := range all {
		if err := revertPart(p); err != nil {
			return err
		}
	}
	return nil
}

// fileResources returns the resources of paths. A path is relative to the
// workspace, or absolute and inside it. A text with :// is a resource.
func fileResources(p *state.Workspace, paths []string) (out []string, err error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if strings.Contains(path, "://") {
			out = append(out, path)
			continue
		}
		inside := path
		if filepath.IsAbs(path) {
			if inside, err = filepath.Rel(dir, path); err != nil {
				return nil, err
			}
		}
		inside = filepath.ToSlash(filepath.Clean(inside))
		if path == "" || inside == ".." || strings.HasPrefix(inside, "../") {
			return nil, cli.UsageProblem(fmt.Sprintf("--file %q: must be a path inside the workspace %s", path, dir))
		}
		if inside == "." {
			out = append(out, "file://workspace")
			continue
		}
		r, err := perm.FileResource("workspace", inside)
		if err != nil {
			return nil, cli.UsageProblem(fmt.Sprintf("--file %q: %v", path, err))
		}
		out = append(out, r.String())
	}
	return out, nil
}

// fileFlag returns a resource as --file takes it.
func fileFlag(resource string) string {
	r, err := perm.ParseResource(resource)
	if err == nil && r.Facts().Root == "workspace" && r.Facts().Path != "" {
		return r.Facts().Path
	}
	return resource
}

// ResolveTxns returns the transactions that an ID, or its unique beginning,
// selects: itself, if it is the ID of a transaction or a call, else those of the
// prompt with this ID, newest first.
func ResolveTxns(ctx context.Context, j journal.Journal, id string) ([]string, error) {
	id, err := state.FullID(ctx, j, id)
	if err != nil {
		return nil, err
	}
	if known, err := isRecorded(ctx, j, id); err != nil || known {
		return []string{id}, err
	}
	txns, err := revert.FindPrompt(ctx, j, id)
	if errors.Is(err, revert.ErrAmbiguous) {
		return nil, cli.UsageProblem(err.Error() + "; give more of it")
	}
	if err == nil && len(txns) == 0 {
		txns = []string{id} // which then is not found
	}
	return txns, err
}

func isRecorded(ctx context.Context, j journal.Journal, id string) (bool, error) {
	for _, q := range []journal.Query{{Txn: id, Limit: 1}, {Call: id, Limit: 1}} {
		for _, err := range j.Entries(ctx, q) {
			return err == nil, err
		}
	}
	return false, nil
}

// changes reports whether a call has a remaining change of one of the resources,
// or below it. No resources are all.
func changesAny(c *revert.Call, resources []string) bool {
	if len(resources) == 0 {
		return true
	}
	return slices.ContainsFunc(c.Remaining(), func(ch effect.Change) bool {
		return slices.ContainsFunc(resources, func(r string) bool {
			return ch.Resource == r || strings.HasPrefix(ch.Resource, strings.TrimSuffix(r, "/")+"/")
		})
	})
}

// promptWords describes a prompt in one line: its ID, client and first words.
func promptWords(p *revert.Prompt) string {
	text := cli.Printable(p.Text)
	switch {
	case p.Erased:
		text = "(erased)"
	case text == "":
		text = "(no text)"
	}
	return fmt.Sprintf("prompt %s of %s: %s", cli.Printable(p.ID), cli.Printable(p.Client), text)
}

// writePrompt says to which prompt a transaction belongs, before it is reverted.
func writePrompt(ctx context.Context, a *cli.App, w io.Writer, j journal.Journal, id string) error {
	t, err := revert.TxnOf(ctx, j, id)
	if err != nil {
		t = id
	}
	p, err := revert.PromptOf(ctx, j, t)
	if err == nil && p != nil {
		_, _ = fmt.Fprintln(w, a.Style().Bold(promptWords(p)))
	}
	return err
}
