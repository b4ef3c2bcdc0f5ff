package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// errJournal: content could not be stored, so no step may be planned.
var errJournal = errors.New("the content for a redo could not be stored")

// plan is one resource while its step is planned.
type plan struct {
	changeChain
	hostRoot
	path string
	at   rootPath

	hidden bool    // behind a link that the call left; the link is reverted first
	was    *record // state to restore; nil: absent
	now    state
	blob   *journal.Blob // content of now, if small: stored by the check
	step   effect.Step
}

// rootPath distinguishes the names of several roots.
type rootPath struct {
	root disk.Root
	path string
}

// Plan settles the changes, compares each resource with the versions that the
// call knows, and orders the steps. Removals come first, deepest first. Then
// the rest follows, topmost first.
func (s scheme) Plan(ctx context.Context, changes []effect.Change, keep journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
	settled := s.settleAll(ctx, changes)
	current, broken, idle := chains(changes)
	plans := make([]*plan, 0, len(current))
	for _, c := range current {
		p := &plan{changeChain: c}
		s.judge(ctx, p, settled[c.resource], keep)
		plans = append(plans, p)
	}
	for _, p := range plans {
		p.below(plans)
	}
	for _, p := range plans {
		p.under(plans)
	}
	sharing(plans).relink(ctx)
	arrange(plans)
	steps, blobs := []effect.Step{}, []journal.Blob{}
	removed, times := map[rootPath]bool{}, timesOf(changes)
	for _, p := range plans {
		blob, err := s.complete(ctx, p, removed, times, keep)
		if err != nil {
			return nil, nil, err
		}
		if blob != nil {
			blobs = append(blobs, *blob)
		}
		removed[rootPath{p.root, p.path}] = p.restores() && p.removes()
	}
	for _, p := range plans {
		p.opens(plans)
		steps = append(steps, p.step)
	}
	for _, c := range broken {
		steps = append(steps, c.nothing(effect.Conflict, "another process changed it between two changes of the call; a revert cannot restore an earlier version"))
	}
	return append(steps, idleSteps(idle, current)...), blobs, nil
}

// complete adds the counter-change to a plan, and what its report says.
func (s scheme) complete(ctx context.Context, p *plan, removed map[rootPath]bool, times map[string]folderTimes, keep journal.ContentStore) (*journal.Blob, error) {
	if p.root != nil {
		was := p.hostRoot
		var end func()
		p.hostRoot, end = p.pin(p.path)
		defer func() {
			p.hostRoot = was
			end()
		}()
	}
	p.checkEntries(ctx, removed)
	blob, err := s.counter(ctx, p, times, keep)
	if err == nil {
		p.mentionSaved(ctx)
	}
	return blob, err
}

// settleAll settles the newest change first and makes the current state
// durable, all together. It returns the errors by resource.
func (s scheme) settleAll(ctx context.Context, changes []effect.Change) map[string]error {
	failed := map[string]error{}
	roots, d := map[string]disk.Root{}, pendingSyncs{}
	for _, c := range slices.Backward(changes) {
		w, err := s.settle(ctx, c, func(w *swap) error { return d.add(ctx, w) })
		if err == nil && w != nil {
			roots[c.Resource] = w.root
		}
		if err != nil {
			failed[c.Resource] = fmt.Errorf("settle %s: %w", c.Resource, err)
		}
	}
	unpaid := d.sync(ctx, hostRoot{host: s.host})
	for resource, root := range roots {
		if err := unpaid[root]; err != nil {
			failed[resource] = err
		}
	}
	return failed
}

// idleSteps returns steps for resources whose changes all had no effect.
func idleSteps(idle []effect.Change, current []changeChain) []effect.Step {
	var steps []effect.Step
	known := make(map[string]bool, len(current))
	for _, c := range current {
		known[c.resource] = true
	}
	for _, c := range idle {
		if known[c.Resource] {
			continue
		}
		none := changeChain{resource: c.Resource, changes: []effect.Change{c}}
		steps = append(steps, none.nothing(effect.Already, "the change had no effect"))
	}
	return steps
}

// nothing returns a step that does nothing.
func (c changeChain) nothing(o effect.Outcome, why string) effect.Step {
	return effect.Step{
		Of: c.numbers(), Plan: o, Why: why,
		Change: effect.Change{Scheme: schemeName, Resource: c.resource},
	}
}

func (p *plan) no(o effect.Outcome, why string) {
	p.step = p.nothing(o, why)
	p.step.Change.Pre = ""
	if p.root != nil {
		p.step.Change.Pre = p.now.Token()
	}
}

// judge compares the current version with the versions that the call knows.
func (s scheme) judge(ctx context.Context, p *plan, unsettled error, keep journal.ContentStore) {
	w, inv, err := s.swap(p.changes[0])
	if err != nil {
		p.no(effect.Failed, err.Error())
		return
	}
	p.path, p.was, p.at = w.target, inv.Was, rootPath{w.root, w.target}
	without := w.hostRoot
	defer w.pinFolder()()
	if err := w.straight(ctx, w.target); err != nil {
		p.no(outcomeOf(err), err.Error())
		return
	}
	if unsettled != nil {
		p.no(effect.Failed, unsettled.Error())
		return
	}
	var small contentSink
	small, p.blob = keepingSmall(ctx, keep)
	if p.now, err = w.look(ctx, w.target, small); err != nil {
		p.no(outcomeOf(err), err.Error())
		return
	}
	p.hostRoot = without
	switch now := p.now.Token(); {
	//mutant:token
	case p.pre().Same(now) && (!p.left(now) || !p.touched()):
		p.no(effect.Already, "")
	case p.left(now) || p.withheld():
		p.step = effect.Step{Of: p.numbers(), Plan: effect.Restored}
	default:
		p.no(effect.Conflict, p.difference())
	}
}

// below judges a path in a directory that is now something else, such as a
// link. Nothing exists under this path. That is the expected state if the
// directory itself has an expected version. Either the directory is restored
// first, or it was replaced after all its entries were removed.
func (p *plan) below(plans []*plan) {
	if p.root != nil || p.step.Plan != effect.Conflict {
		return
	}
	for _, o := range plans {
		if o.root == nil || o.root != p.at.root || !strings.HasPrefix(p.path, o.path+"/") || o.now.Type == typeDir {
			continue
		}
		//mutant:token
		switch found := o.pre().Same(o.now.Token()); {
		case p.was == nil && (found || o.restores()):
			p.hostRoot = o.hostRoot
			p.no(effect.Already, "")
			return
		case p.was != nil && o.restores() && p.left(effect.Absent):
			p.hostRoot, p.hidden = o.hostRoot, true
			p.step = effect.Step{Of: p.numbers(), Plan: effect.Restored}
			return
		}
	}
}

// under skips a name that would be restored in a different directory than
// before: one made with other rights in place of one that the call removed.
// More users could reach the name than before.
func (p *plan) under(plans []*plan) {
	if p.was == nil || !p.restores() {
		return
	}
	for _, o := range plans {
		if o.root != nil && o.root == p.root && o.step.Plan == effect.Conflict && strings.HasPrefix(p.path, o.path+"/") && o.was.letsIn(o.now.Version) {
			p.no(effect.Conflict, otherFolder(o.path))
			return
		}
	}
}

// letsIn reports whether a previous directory is now another one that may admit
// more.
func (r *record) letsIn(now Version) bool {
	if r == nil || r.Type != typeDir || now.Type != typeDir {
		return false
	}
	was, err := r.version()
	return err != nil || was.Owner != now.Owner || now.Perm&^was.Perm != 0 || !slices.Equal(pairs(was.Xattrs), pairs(now.Xattrs))
}

// otherFolder states why nothing below a directory is restored.
func otherFolder(dir string) string {
	return fmt.Sprintf("its directory %q was replaced and may give others access; move or remove the new one, then revert the call again", dir)
}

func outcomeOf(err error) effect.Outcome {
	if elsewhere(err) || errors.Is(err, ErrConflict) {
		return effect.Conflict
	}
	return effect.Failed
}

// touched reports whether a file that the call wrote and restored has another
// time than before.
func (p *plan) touched() bool {
	if p.now.Type == typeDir {
		return p.retouched()
	}
	return p.was != nil && p.now.Type == typeFile && p.was.Mtime != nil && !p.was.time().Equal(p.now.info.Mtime)
}

func (p *plan) restores() bool { return p.step.Plan == effect.Restored }

func (p *plan) removes() bool { return p.was == nil }

func (p *plan) depth() int { return strings.Count(p.path, "/") }

// arrange puts the plans into an executable order.
func arrange(plans []*plan) {
	slices.SortStableFunc(plans, func(a, b *plan) int {
		switch {
		case a.removes() != b.removes():
			if a.removes() {
				return -1
			}
			return 1
		case a.removes():
			return b.depth() - a.depth()
		default:
			return a.depth() - b.depth()
		}
	})
	// A name that shares a file with another comes after it, to be made as its
	// link.
	by := sharing(plans)
	slices.SortStableFunc(plans, func(a, b *plan) int { return by.depth(a) - by.depth(b) })
}

// checkEntries refuses to remove a directory with entries that this revert does
// not remove before it. Deeper directories were checked before.
func (p *plan) checkEntries(ctx context.Context, removed map[rootPath]bool) {
	if !p.restores() || p.now.Type != typeDir || (p.was != nil && p.was.Type == typeDir) {
		return
	}
	found, err := p.entries(ctx, p.path)
	if err != nil {
		p.no(effect.Failed, err.Error())
		return
	}
	var others []string
	for _, e := range found {
		name := path.Join(p.path, e.Name)
		if !removed[rootPath{p.root, name}] {
			others = append(others, e.Name)
		}
	}
	if len(others) == 0 {
		return
	}
	const most = 5
	more := ""
	if len(others) > most {
		others, more = others[:most], fmt.Sprintf(" and %d more", len(others)-most)
	}
	p.no(effect.Conflict, fmt.Sprintf("the directory has entries that the call did not create: %q%s; move or remove them, then revert the call again", others, more))
}

// counter creates the counter-change and stores the content that it will
// displace, so that the revert can itself be reverted.
func (s scheme) counter(ctx context.Context, p *plan, times map[string]folderTimes, keep journal.ContentStore) (*journal.Blob, error) {
	if !p.restores() {
		return nil, nil
	}
	again, blob, failed, err := p.keep(ctx, keep)
	switch {
	case failed != nil:
		return nil, fmt.Errorf("%s: %w: %w", p.resource, errJournal, failed)
	case err != nil:
		p.no(outcomeOf(err), err.Error())
		return nil, nil
	//mutant:token
	case !again.Token().Same(p.now.Token()):
		p.now = again
		p.no(effect.Conflict, "it changes while the undo is planned")
		return nil, nil
	}
	left, err := readInverse(p.changes[len(p.changes)-1])
	if err != nil {
		return nil, err
	}
	c, err := change(p.resource, newStage(s.host), again.record(blob).with(left.Will.hardLink()), p.was, again.Token(), p.pre(), p.back(ctx, left, times))
	if err != nil {
		return nil, err
	}
	c.N = p.changes[0].N
	p.step.Change = c
	if p.was != nil && p.was.Elsewhere > 0 {
		p.step.Why = outside(p.was.Elsewhere)
	}
	return blob, nil
}

// keep reads the file that will be displaced and stores its content. The result
// failed is the error of the journal.
func (p *plan) keep(ctx context.Context, keep journal.ContentStore) (again state, blob *journal.Blob, failed, err error) {
	switch {
	case p.hidden:
		return state{}, nil, nil, nil
	case p.now.Type != typeFile:
		return p.now, nil, nil, nil
	case p.blob.Ref().Digest == p.now.Content: // the check already stored it
		return p.now, p.blob, nil, nil
	}
	into, blob := keeping(func(r io.Reader) (journal.Blob, error) {
		b, err := keep.StoreContent(ctx, r)
		failed = err
		return b, err
	})
	again, err = p.look(ctx, p.path, into)
	if again.Type != typeFile {
		blob = nil
	}
	return again, blob, failed, err
}

// keepingSmall returns a sink that stores content which fits into the batch
// that names it, so that it is read once. It only digests larger content, which
// is stored when that becomes necessary.
func keepingSmall(ctx context.Context, keep journal.ContentStore) (contentSink, *journal.Blob) {
	into, blob := keeping(func(r io.Reader) (journal.Blob, error) { return keep.StoreContent(ctx, r) })
	return func(r io.Reader) (string, error) {
		*blob = journal.Blob{}
		if f, ok := r.(sizedFile); !ok || !f.small() {
			return hashing(r)
		}
		digest, err := into(r)
		if err != nil {
			err = fmt.Errorf("%w: %w", errJournal, err)
		}
		return digest, err
	}, blob
}

// mentionSaved reports the names to which Settle moved versions that had no
// other place.
func (p *plan) mentionSaved(ctx context.Context) {
	if p.root == nil {
		return
	}
	var names []string
	for _, c := range p.changes {
		inv, err := readInverse(c)
		if err != nil {
			continue
		}
		name := savedName(p.path, path.Join(path.Dir(p.path), inv.Stage), 1)
		if _, err := p.lstat(ctx, name); err == nil {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		p.step.Why = strings.TrimPrefix(p.step.Why+"; a version of another process was moved to "+strings.Join(names, ", "), "; ")
	}
}
