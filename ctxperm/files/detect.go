package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// FilePreImage is the state of one path before a program without handles
// changed it.
type FilePreImage struct {
	Version // the zero Version: absent; Add fills in the digest of the content

	Path     string
	Mtime    time.Time                     // time of a file or link
	Open     func() (io.ReadCloser, error) // opens the content of a file
	HardLink string                        // another name of the file; empty: it had only one

	inode  uint64    // of a file with several names that this package captured; 0: it had one
	folder time.Time // of the folder of the path; zero: unknown, or there was none
}

// DetectedChanges are changes below some roots that have already happened. They
// are found by comparison with the pre-images. One goroutine detects those of
// each root, records them, and optionally has them decided.
type DetectedChanges struct {
	host  host.Host
	keep  journal.ContentStore
	all   []detectedChange
	blobs []journal.Blob
}

// detectedChange is one path that differs from its pre-image.
type detectedChange struct {
	hostRoot
	path     string
	was      state
	now      state
	open     func() (io.ReadCloser, error)
	hardLink string // another name that the file had
	folder   time.Time
	blind    bool // the current state cannot be read
	change   effect.Change
}

// NewDetectedChanges creates an empty set that stores contents in keep.
func NewDetectedChanges(h revert.Host, keep journal.ContentStore) *DetectedChanges {
	return &DetectedChanges{host: h, keep: keep}
}

// Len returns the number of changes.
func (t *DetectedChanges) Len() int { return len(t.all) }

// detect compares the pre-images of some paths of a root with their current state,
// and stores the previous contents. It adds no change for an unchanged path.
// For a path that cannot be read it returns an error, and adds a change that
// can only be reverted after a check of the file.
func (t *DetectedChanges) detect(ctx context.Context, name string, root disk.Root, before []FilePreImage) error {
	s := hostRoot{root: disk.WithoutLinks(root), host: t.host}
	var mine []detectedChange
	var unclear error
	for _, b := range before {
		one, differs, err := s.trace(ctx, b)
		if err != nil {
			unclear = errors.Join(unclear, fmt.Errorf("%s: what became of it cannot be told: %w", b.Path, err))
		}
		if differs {
			mine = append(mine, one)
		}
	}
	slices.SortStableFunc(mine, inOrder)
	shared, err := s.sharing(ctx, mine)
	if err != nil {
		return errors.Join(unclear, err)
	}
	for i := range mine {
		if err := t.explain(ctx, name, &mine[i], shared[mine[i].path]); err != nil {
			return errors.Join(unclear, err)
		}
	}
	t.all = append(t.all, mine...)
	return unclear
}

// inOrder compares changes of one call: removals first, deepest first, then the
// rest, topmost first.
func inOrder(a, b detectedChange) int {
	gone := func(t detectedChange) bool { return !t.now.exists() }
	depth := strings.Count(a.path, "/") - strings.Count(b.path, "/")
	switch {
	case gone(a) != gone(b) && gone(a):
		return -1
	case gone(a) != gone(b):
		return 1
	case gone(a):
		return -depth
	default:
		return depth
	}
}

// trace compares one path.
func (s hostRoot) trace(ctx context.Context, b FilePreImage) (t detectedChange, differs bool, err error) {
	t = detectedChange{hostRoot: s, path: b.Path, was: state{Version: b.Version, info: disk.Info{Mtime: b.Mtime}}, open: b.Open, hardLink: b.HardLink, folder: b.folder}
	if b.Type == typeFile {
		if t.was.Content, err = digestOf(b.Open); err != nil {
			return t, false, fmt.Errorf("what it held: %w", err)
		}
	}
	if t.now, err = s.nowAt(ctx, b.Path); err != nil {
		t.blind, t.now = true, state{Version: Version{Type: disk.TypeOther.String()}}
		return t, true, err
	}
	//mutant:token
	same := t.was.Token().Same(t.now.Token())
	return t, !same || retimes(t.was, fileImage{mtime: t.now.info.Mtime}), nil
}

func digestOf(open func() (io.ReadCloser, error)) (string, error) {
	r, err := open()
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	return hashing(r)
}

// nowAt returns the state of a path. There is nothing behind a link that
// replaced a folder.
func (s hostRoot) nowAt(ctx context.Context, name string) (state, error) {
	err := s.straight(ctx, name)
	if err == nil {
		var now state
		if now, err = s.look(ctx, name, hashing); err == nil {
			return now, nil
		}
	}
	if elsewhere(err) || missing(err) {
		return state{}, nil
	}
	return state{}, err
}

// sharing finds, for each path whose file now has several names, another name
// from which it can be linked again.
func (s hostRoot) sharing(ctx context.Context, all []detectedChange) (map[string]string, error) {
	names, changed := map[uint64][]string{}, map[string]bool{}
	for _, t := range all {
		if t.now.Type == typeFile && t.now.info.Links > 1 {
			names[t.now.info.Inode] = nil
			changed[t.path] = true
		}
	}
	twin := map[string]string{}
	if len(names) == 0 {
		return twin, nil
	}
	if err := s.collect(ctx, ".", names); err != nil {
		return nil, err
	}
	first := map[uint64]string{}
	for inode, some := range names {
		if at := slices.IndexFunc(some, func(name string) bool { return !changed[name] }); at >= 0 {
			first[inode] = some[at]
		}
	}
	for _, t := range all {
		if !changed[t.path] {
			continue
		}
		if twin[t.path] = first[t.now.info.Inode]; twin[t.path] == "" {
			first[t.now.info.Inode] = t.path
		}
	}
	return twin, nil
}

// explain creates the change of a path, and stores the previous content.
func (t *DetectedChanges) explain(ctx context.Context, root string, one *detectedChange, twin string) error {
	r, err := perm.FileResource(root, one.path)
	if err != nil {
		return fmt.Errorf("%s: it was changed, and its name cannot be written down: %w", one.path, err)
	}
	was := one.was.record(nil)
	if one.was.Type == typeFile {
		blob, err := t.content(ctx, *one)
		if err != nil {
			return fmt.Errorf("%s: what it held: %w", one.path, err)
		}
		t.blobs, was = append(t.blobs, blob), one.was.record(&blob)
	}
	pre, post := one.was.Token(), one.now.Token()
	will := one.now.record(nil).with(twin)
	if one.blind {
		post = ""
	}
	if !pre.Known() {
		return invalid(one.path, "it had more attributes than can be recorded")
	}
	times, err := one.folderTimes(ctx)
	if err != nil {
		return fmt.Errorf("%s: the time of its folder: %w", one.path, err)
	}
	one.change, err = change(r.String(), newStage(t.host), was.with(one.hardLink), will, pre, post, times)
	return err
}

// folderTimes returns the times of the folder of a path before and after the
// call, with what other processes did in it meanwhile. The result is nil if they
// are unknown.
func (t *detectedChange) folderTimes(ctx context.Context) (*folderTimes, error) {
	if t.folder.IsZero() || t.was.Type == typeDir && t.now.Type == typeDir {
		return nil, nil //nolint:nilnil // unknown times are no error
	}
	info, err := t.lstat(ctx, parentOf(t.path))
	if missing(err) || elsewhere(err) || err == nil && info.Type != disk.TypeDir {
		return nil, nil //nolint:nilnil // as above
	}
	return &folderTimes{Was: mtimeOf(t.folder), Will: mtimeOf(info.Mtime)}, err
}

// content stores the previous content, and verifies that it is the compared
// one.
func (t *DetectedChanges) content(ctx context.Context, one detectedChange) (journal.Blob, error) {
	r, err := one.open()
	if err != nil {
		return journal.Blob{}, err
	}
	defer func() { _ = r.Close() }()
	blob, err := t.keep.StoreContent(ctx, r)
	if err == nil && blob.Ref().Digest != one.was.Content {
		err = conflict(one.path, "the copy of it changes while it is read")
	}
	return blob, err
}

// Changes returns the detected changes, and the contents that they need.
func (t *DetectedChanges) Changes() (all []effect.Change, blobs []journal.Blob) {
	for _, one := range t.all {
		all = append(all, one.change)
	}
	return all, t.blobs
}

// record records all changes for a call. They are durable when it returns. It
// skips a resource that another open transaction claims, returns
// journal.ErrClaimed for it, and records all others.
func (t *DetectedChanges) record(ctx context.Context, call *callstate.Call) error {
	op, err := call.Reenter()
	if err != nil {
		return err
	}
	defer op.Leave()
	var others error
	t.leave(call)
	for {
		changes, blobs := t.Changes()
		accesses, _, err := allAsked(changes)
		if err != nil || len(changes) == 0 {
			return errors.Join(others, err)
		}
		_, err = contexts.NewPermit(op, accesses...).RecordChange(ctx, changes, blobs...)
		var held *journal.ClaimedError
		if !errors.As(err, &held) {
			return errors.Join(others, err)
		}
		others = errors.Join(others, err)
		t.all = slices.DeleteFunc(t.all, func(one detectedChange) bool { return one.change.Resource == held.Resource })
	}
}

// decide authorizes all recorded changes, like a program's change set. A denied
// change has already happened, so the call must be reverted.
func (t *DetectedChanges) decide(ctx context.Context, call *callstate.Call) error {
	changes, _ := t.Changes()
	accesses, facts, err := allAsked(changes)
	if err != nil {
		return err
	}
	return call.AuthorizeChanges(ctx, accesses, facts, func() string { return t.preview(ctx) })
}

func allAsked(changes []effect.Change) (accesses []perm.ResourceAccess, facts []perm.ChangeFacts, err error) {
	for _, c := range changes {
		a, f, err := asked(c)
		if err != nil {
			return nil, nil, err
		}
		accesses, facts = append(accesses, a), append(facts, f)
	}
	return accesses, facts, nil
}

// preview returns all changes as a patch, for the approver.
func (t *DetectedChanges) preview(ctx context.Context) string {
	var p patch
	for _, one := range t.all {
		p.add(ctx, one.change, path.Clean(strings.TrimPrefix(one.change.Resource, "file://")), one.delta)
	}
	return p.String()
}

func (t detectedChange) delta() (diff.Delta, error) {
	before, err := t.was.record(nil).resourceVersion(t.change.Pre)
	if err != nil {
		return diff.Delta{}, err
	}
	after, err := t.now.record(nil).resourceVersion(t.change.Post)
	if err != nil {
		return diff.Delta{}, err
	}
	if t.was.Type == typeFile {
		before = before.From(func(context.Context) (io.ReadCloser, error) { return t.open() })
	}
	if t.now.Type == typeFile {
		after = after.From(func(context.Context) (io.ReadCloser, error) { return t.pinned(t.path, t.now) })
	}
	return diff.Delta{Resource: t.change.Resource, Before: before, After: after}, nil
}
