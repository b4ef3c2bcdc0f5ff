package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// SnapshotConfig configures a Snapshotter. A zero number has its default.
type SnapshotConfig struct {
	Dir      string // a folder of this user outside every root that outlives processes; created if missing
	MaxFiles int    // maximum number of files in one folder; default 200,000
	MaxBytes int64  // maximum total size of its files; default 4 GiB
}

// Snapshotter copies folders before a call to a program outside the sandbox,
// such as an MCP server. It keeps a copy between calls, so that the next call
// only checks each name and copies what changed. It is a driver of the runtime
// (agent.Driver), which uses it to find the changes of a call whose process
// died. A Snapshotter is safe for concurrent use.
type Snapshotter struct {
	cfg    SnapshotConfig
	driver Driver // finds the masked names

	mu        sync.Mutex // never held across a wait
	rootLocks map[string]*rootLock
	known     map[string]*snapshotStore // used by this process, by path

	diskSyncer
}

// diskSyncer makes written data durable.
type diskSyncer struct {
	sync  func(*os.File) error // syncs one file or folder
	flush func(*os.File) error // syncs its whole file system
}

// rootLock gives one call at a time a root.
type rootLock struct {
	slot   chan struct{}
	holder string // a call; under Snapshotter.mu
	held   int    // how often the call holds it; under Snapshotter.mu
	file   *os.File
}

// Folder is a folder with everything in it.
type Folder struct {
	Root   string // name of a root
	Folder string // path below it; "." or empty: the whole root
}

// NewSnapshotter creates a Snapshotter. It creates nothing on the disk yet.
func NewSnapshotter(c SnapshotConfig) (*Snapshotter, error) {
	if c.Dir == "" {
		return nil, errors.New("process: copies of folders need a folder of their own, outside every root")
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, fmt.Errorf("process: the folder for copies: %w", err)
	}
	if c.MaxFiles <= 0 {
		c.MaxFiles = 200_000
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 4 << 30
	}
	return &Snapshotter{cfg: c, driver: Driver{seen: map[string]*index{}}, rootLocks: map[string]*rootLock{}, known: map[string]*snapshotStore{}, diskSyncer: diskSyncer{(*os.File).Sync, flush}}, nil
}

// Schemes returns the scheme that finds the changes of interrupted calls.
func (k *Snapshotter) Schemes() []revert.Scheme { return []revert.Scheme{changeFinder{k}} }

// CheckRoot refuses a root that contains the copies, or lies in them.
func (k *Snapshotter) CheckRoot(root string) error {
	root, mine := resolved(root), resolved(k.cfg.Dir)
	if within(root, mine) || within(mine, root) {
		return fmt.Errorf("%w: what folders held is kept in %s, and the root lies at %s: one of them is inside of the other; have remit keep its state outside of the root (--state)", ctxperm.ErrInvalid, mine, root)
	}
	return nil
}

func within(dir, name string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// resolved returns a path without links, as far as the path exists.
func resolved(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if up := filepath.Dir(path); up != path {
		return filepath.Join(resolved(up), filepath.Base(path))
	}
	return path
}

// folderSize is the number of files in a folder and their bytes.
type folderSize struct {
	names int
	bytes int64
}

// errFolderTooLarge states that a folder exceeds the limits of a snapshot.
var errFolderTooLarge = errors.New("the folder is too large for a snapshot")

// FolderSnapshot is the content of some folders before a program acted for a
// call. The caller must call RecordChanges, and optionally AuthorizeChanges, or
// Discard.
type FolderSnapshot struct {
	keep     *Snapshotter
	call     *callstate.Call
	op       *callstate.Op
	trees    []*folderCopy
	recorded bool
	traces   *files.DetectedChanges
}

// folderCopy is the copy of one folder.
type folderCopy struct {
	*snapshotStore
	usageMarker

	root      disk.Root
	masked    map[string]fileStamp // stamps before the call, by name below the folder
	untracked record.MaskedFiles   // set by differences
}

// usageMarker is written beside a copy while a call relies on it.
type usageMarker struct {
	Call    string        `json:"call"`
	Take    string        `json:"take"`
	Name    string        `json:"name"` // name of the root
	Dir     string        `json:"dir"`  // folder of the root
	Root    disk.Identity `json:"root"`
	Folder  string        `json:"folder"`
	Missing bool          `json:"missing,omitempty"` // the folder did not exist
	Masks   []string      `json:"masks,omitempty"`
	Place   string        `json:"place"`
}

// journaledMarker is the form of a usageMarker in the journal.
type journaledMarker struct {
	Place string `json:"place"`
	Take  string `json:"take"`
}

// snapshotNotePrefix is the prefix of the keys of notes about snapshots. The name of a
// take follows it.
const snapshotNotePrefix = "remit.kept:"

// Take saves the content of some folders, durable when it returns. Until this
// call has ended, no other call of this user can use their roots or the roots
// in beside. Take denies a call that may not change all of a folder, because
// the program is not held to less. It neither saves nor reads masked files.
func (k *Snapshotter) Take(ctx context.Context, tc ctxperm.ToolContext, trees []Folder, beside ...string) (_ *FolderSnapshot, err error) {
	call := contexts.Call(tc)
	if call == nil {
		return nil, ctxperm.ErrClosed
	}
	op, err := call.Enter(ctx)
	if err != nil {
		return nil, err
	}
	out := &FolderSnapshot{keep: k, call: call, op: op}
	defer func() {
		if err != nil {
			out.Discard()
		}
	}()
	if err := k.enter(ctx, out, trees, beside); err != nil {
		return nil, err
	}
	for _, t := range trees {
		one, err := k.tree(ctx, call, t)
		if err != nil {
			return nil, fmt.Errorf("the content of %s cannot be saved, so the call is not made: %w", t, err)
		}
		out.trees = append(out.trees, one)
	}
	if len(out.trees) == 0 {
		return out, nil
	}
	var notes []journaledMarker
	for _, t := range out.trees {
		notes = append(notes, journaledMarker{t.Place, t.Take})
	}
	return out, call.Note(ctx, snapshotNotePrefix+out.trees[0].Take, notes)
}

// String returns the folder as a pattern.
func (t Folder) String() string {
	if t.Folder == "" || t.Folder == "." {
		return "file://" + t.Root + "/**"
	}
	return "file://" + t.Root + "/" + t.Folder + "/**"
}

// Discard releases a snapshot if no program has acted. After RecordChanges it
// does nothing.
func (h *FolderSnapshot) Discard() {
	if h == nil || h.recorded {
		return
	}
	h.release()
	h.op.Leave()
}

// RecordChanges finds the changes in the folders and records them, durable when
// it returns. Final states that no program acts for the call any more.
// Otherwise later changes, and so the outcome of the call, cannot be known, and
// RecordChanges returns that error.
func (h *FolderSnapshot) RecordChanges(ctx context.Context, final bool) (err error) {
	if h == nil {
		return nil
	}
	defer h.op.Leave()
	h.recorded = true
	if len(h.trees) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	recorder := h.call.Config().Recorder
	if err := recorder.Host().Point(ctx, "process.tell"); err != nil {
		return errors.Join(callstate.ErrOutcomeUnknown, err)
	}
	h.traces = files.NewDetectedChanges(recorder.Host(), recorder.Journal())
	for _, t := range h.trees {
		before, lost, diff := t.differences(ctx, &h.keep.driver, recorder.Host().Now())
		err = errors.Join(err, diff, lost)
		if diff == nil {
			err = errors.Join(err, fileInternals.Detect(ctx, h.traces, t.Name, t.root, before))
		}
	}
	err = errors.Join(err, fileInternals.Record(ctx, h.traces, h.call))
	if err = errors.Join(err, h.recordUntracked(ctx)); err != nil {
		return errors.Join(callstate.ErrOutcomeUnknown, err)
	}
	if err := recorder.Host().Point(ctx, "process.told"); err != nil {
		return errors.Join(callstate.ErrOutcomeUnknown, err)
	}
	if final {
		h.release()
		return nil
	}
	if cfg := h.call.Config(); !cfg.Locks.Then(cfg.ID, h.release) { // only after the journal states that the outcome is unknown
		h.release()
	}
	return callstate.ErrOutcomeUnknown
}

// recordUntracked records the masked names, so that a report can list them. It does
// nothing for a call that declares only reads and changed nothing.
func (h *FolderSnapshot) recordUntracked(ctx context.Context) error {
	if changes, _ := h.traces.Changes(); h.call.Config().Class == effect.Pure && len(changes) == 0 {
		return nil
	}
	var all record.MaskedFiles
	for _, t := range h.trees {
		all.Names, all.Changed = append(all.Names, t.untracked.Names...), append(all.Changed, t.untracked.Changed...)
		all.Added, all.Gone = append(all.Added, t.untracked.Added...), append(all.Gone, t.untracked.Gone...)
	}
	left := 8 // names: enough for a sentence
	for _, some := range []*[]string{&all.Changed, &all.Added, &all.Gone, &all.Names} {
		slices.Sort(*some)
		keep := min(left, len(*some))
		all.More += len(*some) - keep
		*some, left = (*some)[:keep], left-keep
	}
	if left == 8 {
		return nil
	}
	return h.call.Note(ctx, all.Key(), all)
}

// AuthorizeChanges authorizes all recorded changes, like a program's change
// set. The changes have happened, so a denial reverts them with the call. It
// waits for no approval.
func (h *FolderSnapshot) AuthorizeChanges(ctx context.Context) error {
	if h == nil || h.traces == nil {
		return nil
	}
	err := fileInternals.Decide(context.WithoutCancel(ctx), h.traces, h.call)
	if err == nil || errors.Is(err, ctxperm.ErrDenied) {
		return err
	}
	return fmt.Errorf("the changes of the call are reverted, because they were not approved in time: %v", err) //nolint:errorlint // whoever waits for an answer would make the call again
}

// Changed returns the resources that RecordChanges found changed.
func (h *FolderSnapshot) Changed() (resources []string) {
	if h == nil || h.traces == nil {
		return nil
	}
	changes, _ := h.traces.Changes()
	for _, c := range changes {
		resources = append(resources, c.Resource)
	}
	return resources
}

func (h *FolderSnapshot) release() {
	for _, t := range h.trees {
		t.release()
	}
}

// changeFinder finds the changes of interrupted calls. It restores nothing,
// because these are changes of files.
type changeFinder struct{ keep *Snapshotter }

// Name returns the name of a scheme that no change has.
func (changeFinder) Name() string { return "kept" }

var errNotKept = errors.New("changes of files are those of their own scheme")

// Settle is never called; it returns an error.
func (changeFinder) Settle(context.Context, effect.Change) (effect.Token, error) {
	return "", errNotKept
}

// Plan is never called; it returns an error.
func (changeFinder) Plan(context.Context, []effect.Change, journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
	return nil, nil, errNotKept
}

// Apply is never called; it returns an error.
func (changeFinder) Apply(_ context.Context, s effect.Step, _ journal.ContentStore) effect.Result {
	return effect.Result{Resource: s.Change.Resource, Outcome: effect.Failed, Why: errNotKept.Error()}
}

var _ revert.ChangeFinder = changeFinder{}

// enter locks each root in the order of their names, and unlocks it when the
// call has ended.
func (k *Snapshotter) enter(ctx context.Context, h *FolderSnapshot, trees []Folder, beside []string) error {
	for _, name := range rootsOf(trees, beside) {
		root, ok := h.call.Root(name)
		if !ok {
			return fmt.Errorf("%w: there is no root %q", ctxperm.ErrInvalid, name)
		}
		dir, err := root.Path()
		if err != nil {
			return fmt.Errorf("root %s: %w", name, err)
		}
		if err := k.CheckRoot(dir); err != nil {
			return err
		}
		cfg := h.call.Config()
		release, err := cfg.Locks.Take(ctx, cfg.ID, "file://"+name)
		if err != nil {
			return err
		}
		h.op.Then(release)
		leave, err := k.lock(ctx, cfg.Recorder.Host(), dir, cfg.ID)
		if err != nil {
			return err
		}
		if !cfg.Locks.Then(cfg.ID, leave) {
			h.op.Then(leave)
		}
	}
	return nil
}

// lock locks a root for a call among all processes of this user. The call may
// already hold it.
func (k *Snapshotter) lock(ctx context.Context, h host.Host, dir, call string) (leave func(), err error) {
	k.mu.Lock()
	g := k.rootLocks[dir]
	if g == nil {
		g = &rootLock{slot: make(chan struct{}, 1)}
		k.rootLocks[dir] = g
	}
	again := g.held > 0 && g.holder == call
	if again {
		g.held++
	}
	k.mu.Unlock()
	if again {
		return k.leaving(g), nil
	}
	select {
	case g.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	file, err := k.await(ctx, h, dir)
	if err != nil {
		<-g.slot
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	g.holder, g.held, g.file = call, 1, file
	return k.leaving(g), nil
}

// leaving returns a function that unlocks a root with its last holder.
func (k *Snapshotter) leaving(g *rootLock) func() {
	return sync.OnceFunc(func() {
		k.mu.Lock()
		g.held--
		over := g.held == 0
		k.mu.Unlock()
		if over {
			_ = g.file.Close() // unlocks
			<-g.slot
		}
	})
}

// rootsOf returns the roots of folders and those in beside, sorted and each
// once.
func rootsOf(trees []Folder, beside []string) []string {
	all := slices.Clone(beside)
	for _, t := range trees {
		all = append(all, t.Root)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
