package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	Watch    bool   // watches the folders, so that calls look only at what changed; for a process that lives long
}

// SnapshotOptions are options of one snapshot. The zero value is that of Take.
type SnapshotOptions struct {
	// Join lets the call run at the same time as others of this process with
	// this option, on the same whole root under the same masks. Each change then
	// belongs to the call that ends first after it.
	Join bool
	// Late makes what changed since the last call on the folder a change of this
	// call, whoever changed it. Without it, such changes belong to no call.
	Late bool
	// NoWait makes AuthorizeChanges deny changes about which the policy asks and
	// no approver is there to ask. Without it, the call waits for an answer in
	// the journal.
	NoWait bool
	// Progress is called now and then while files are copied.
	Progress func(done, total int)
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
	turns     map[string]chan struct{}  // held by who uses a copy; by path

	diskSyncer
}

// diskSyncer makes written data durable.
type diskSyncer struct {
	sync  func(*os.File) error // syncs one file or folder
	flush func(*os.File) error // syncs its whole file system
}

// rootLock gives one call at a time a root, or several that join.
type rootLock struct {
	slot   chan struct{}
	came   chan struct{} // closed when somebody gets the root; under Snapshotter.mu
	holder string        // a call, or what calls that join have in common; under Snapshotter.mu
	held   int           // how often the call holds it; under Snapshotter.mu
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
	return &Snapshotter{cfg: c, driver: Driver{seen: map[string]*index{}}, rootLocks: map[string]*rootLock{}, known: map[string]*snapshotStore{}, turns: map[string]chan struct{}{}, diskSyncer: diskSyncer{(*os.File).Sync, flush}}, nil
}

// Close ends the watches. No call may be in progress.
func (k *Snapshotter) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.known {
		s.close()
	}
	clear(k.known)
	return nil
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
	dir, name = filepath.ToSlash(dir), filepath.ToSlash(name)
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
	noWait   bool
	traces   *files.DetectedChanges
}

// folderCopy is the copy of one folder.
type folderCopy struct {
	*snapshotStore
	usageMarker

	turn      chan struct{} // held while the copy is used
	root      disk.Root
	masked    map[string]fileStamp // stamps before the call, by name below the folder
	untracked record.MaskedFiles   // set by differences
	found     []foundName          // what differed when the call ended
	hiddenAt  map[string]bool      // masked names at that time
	others    map[string]bool      // calls that ran at the same time
	done      bool                 // its changes are recorded
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
	Joins   bool          `json:"joins,omitempty"` // other calls can rely on the copy at the same time

	// Of a call that ended while others rely on the copy: what it is about to
	// record.
	Ending bool        `json:"ending,omitempty"`
	Found  []foundName `json:"found,omitempty"`
}

// foundName is a name that an ending call found changed.
type foundName struct {
	Name string `json:"name"`
	Is   mark   `json:"is"`  // its stamp in the folder and before, as a mark
	Pre  string `json:"pre"` // version before; empty: no change of the call
}

// journaledMarker is the form of a usageMarker in the journal.
type journaledMarker struct {
	Place string `json:"place"`
	Take  string `json:"take"`
}

// snapshotNotePrefix is the prefix of the keys of notes about snapshots. The name of a
// take follows it.
const snapshotNotePrefix = "remit.kept:"

// overlapsNote is the key of the note with the calls that ran at the same time.
const overlapsNote = "remit.overlaps"

// Take saves the content of some folders, durable when it returns. Until this
// call has ended, no other call of this user can use their roots or the roots
// in beside. Take denies a call that may not change all of a folder, because
// the program is not held to less. It neither saves nor reads masked files.
func (k *Snapshotter) Take(ctx context.Context, tc ctxperm.ToolContext, trees []Folder, beside ...string) (*FolderSnapshot, error) {
	return k.TakeWith(ctx, tc, SnapshotOptions{}, trees, beside...)
}

// TakeWith is Take with options.
func (k *Snapshotter) TakeWith(ctx context.Context, tc ctxperm.ToolContext, o SnapshotOptions, trees []Folder, beside ...string) (_ *FolderSnapshot, err error) {
	call := contexts.Call(tc)
	if call == nil {
		return nil, ctxperm.ErrClosed
	}
	op, err := call.Enter(ctx)
	if err != nil {
		return nil, err
	}
	out := &FolderSnapshot{keep: k, call: call, op: op, noWait: o.NoWait}
	if cfg := call.Config(); o.Join {
		defer func() {
			if err == nil && !cfg.Locks.Then(cfg.ID, out.left) {
				op.Then(out.left)
			}
		}()
	}
	defer func() {
		if err != nil {
			out.Discard()
		}
	}()
	o.Join = o.Join && len(trees) == 1 && len(beside) == 0 && (trees[0].Folder == "" || trees[0].Folder == ".")
	if err := k.enter(ctx, out, o, trees, beside); err != nil {
		return nil, err
	}
	for _, t := range trees {
		one, err := k.tree(ctx, call, t, o)
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
	for _, t := range h.trees {
		t.discard()
	}
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
	if err := h.recordTrees(ctx); err != nil {
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

// recordTrees records the changes in all folders. No other call uses their
// copies meanwhile.
func (h *FolderSnapshot) recordTrees(ctx context.Context) (err error) {
	recorder := h.call.Config().Recorder
	h.traces = files.NewDetectedChanges(recorder.Host(), recorder.Journal())
	for _, t := range h.trees { // in the order of all calls: by root and folder
		_ = t.take(ctx) // does not end
		defer t.give()
		defer t.end()
	}
	for _, t := range h.trees {
		before, lost, diff := t.differences(ctx, &h.keep.driver, recorder.Host().Now())
		err = errors.Join(err, diff, lost)
		if diff == nil {
			err = errors.Join(err, fileInternals.Detect(ctx, h.traces, t.Name, t.root, before))
		}
		err = errors.Join(err, t.announce(h.traces))
	}
	err = errors.Join(err, fileInternals.Record(ctx, h.traces, h.call))
	if err = errors.Join(err, h.recordUntracked(ctx), h.recordOthers(ctx)); err != nil {
		return err
	}
	for _, t := range h.trees {
		t.recorded()
	}
	return nil
}

// Overlapped returns the IDs of the calls that used the same folders at the
// same time, sorted. It is complete after RecordChanges. Changes may belong to
// one of them instead.
func (h *FolderSnapshot) Overlapped() []string {
	if h == nil {
		return nil
	}
	all := map[string]bool{}
	for _, t := range h.trees {
		maps.Copy(all, t.others)
	}
	return slices.Sorted(maps.Keys(all))
}

// recordOthers records the calls that ran at the same time.
func (h *FolderSnapshot) recordOthers(ctx context.Context) error {
	others := h.Overlapped()
	if len(others) == 0 {
		return nil
	}
	return h.call.Note(ctx, overlapsNote, map[string][]string{"calls": others})
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
// waits for an approval as long as a running call does, but for
// SnapshotOptions.NoWait.
func (h *FolderSnapshot) AuthorizeChanges(ctx context.Context) error {
	if h == nil || h.traces == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if h.noWait {
		ctx = callstate.WithoutWait(ctx)
	}
	err := fileInternals.Decide(ctx, h.traces, h.call)
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
		t.conclude()
	}
}

// left states that the call has ended and will not be reverted on failure.
func (h *FolderSnapshot) left() {
	for _, t := range h.trees {
		t.left()
	}
}

// take waits for the turn to use the copy.
func (t *folderCopy) take(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *folderCopy) give() { <-t.turn }

// turnOf returns what is held by who uses a copy.
func (k *Snapshotter) turnOf(place string) chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.turns[place] == nil {
		k.turns[place] = make(chan struct{}, 1)
	}
	return k.turns[place]
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
func (k *Snapshotter) enter(ctx context.Context, h *FolderSnapshot, o SnapshotOptions, trees []Folder, beside []string) error {
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
		group := ""
		if o.Join {
			group = "joined\n" + strings.Join(h.call.Terms().Masks, "\n")
		}
		release, err := cfg.Locks.TakeShared(ctx, cfg.ID, "file://"+name, group)
		if err != nil {
			return err
		}
		h.op.Then(release)
		holder := cfg.ID
		if o.Join {
			holder = group
		}
		leave, err := k.lock(ctx, cfg.Recorder.Host(), dir, holder)
		if err != nil {
			return err
		}
		if !cfg.Locks.Then(cfg.ID, leave) {
			h.op.Then(leave)
		}
	}
	return nil
}

// lock locks a root for a call, or for calls that join, among all processes of
// this user. They may already hold it.
func (k *Snapshotter) lock(ctx context.Context, h host.Host, dir, call string) (leave func(), err error) {
	k.mu.Lock()
	g := k.rootLocks[dir]
	if g == nil {
		g = &rootLock{slot: make(chan struct{}, 1), came: make(chan struct{})}
		k.rootLocks[dir] = g
	}
	came, again := g.came, g.held > 0 && g.holder == call
	if again {
		g.held++
	}
	k.mu.Unlock()
	if again {
		return k.leaving(g), nil
	}
	select {
	case g.slot <- struct{}{}:
	case <-came: // perhaps one that this call can join
		return k.lock(ctx, h, dir, call)
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
	close(g.came)
	g.came = make(chan struct{})
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
