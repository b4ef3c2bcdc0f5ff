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

// SnapshotConfig is what a Keep is made of. A zero number takes its default.
type SnapshotConfig struct {
	Dir      string // a folder of this user's outside every root, which outlives processes; made where it is not there
	MaxFiles int    // the most that one folder may hold; default 200,000
	MaxBytes int64  // the most that its files may hold; default 4 GiB
}

// Snapshotter has copies of folders in which somebody acts for a call whom no sandbox holds, such as somebody's server of tools. A
// copy is kept between calls, so that the next one costs a look at each name and a copy of what changed. It is a driver of
// the runtime (agent.Driver), which finds by it what a call changed whose process died. It is safe for concurrent use.
type Snapshotter struct {
	cfg    SnapshotConfig
	driver Driver // which knows what is masked

	mu    sync.Mutex // never held across a wait
	gates map[string]*rootLock
	known map[string]*snapshotStore // that this process has used, by place

	diskSyncer
}

// diskSyncer make durable what was written.
type diskSyncer struct {
	sync  func(*os.File) error // of one file or folder
	flush func(*os.File) error // of all of its file system
}

// rootLock lets one call at a time have a root.
type rootLock struct {
	turn   chan struct{}
	holder string // a call; under Snapshotter.mu
	held   int    // how often it has it; likewise
	file   *os.File
}

// Folder is a folder with all that is in it.
type Folder struct {
	Root   string // name of a root
	Folder string // below it; "." or empty: all of the root
}

// NewSnapshotter makes a Keep. It makes nothing on the disk yet.
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
	return &Snapshotter{cfg: c, driver: Driver{seen: map[string]*index{}}, gates: map[string]*rootLock{}, known: map[string]*snapshotStore{}, diskSyncer: diskSyncer{(*os.File).Sync, flush}}, nil
}

// Schemes returns what finds the changes of interrupted calls.
func (k *Snapshotter) Schemes() []revert.Scheme { return []revert.Scheme{changeFinder{k}} }

// CheckRoot refuses a root which the copies lie in, or which lies in them.
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

// resolved is a path without links, as far as there is something.
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

// folderSize is how much a folder holds.
type folderSize struct {
	names int
	bytes int64
}

// ErrFolderTooLarge means that a folder holds more than is kept of one.
var ErrFolderTooLarge = errors.New("the folder holds too much to be kept before each call")

// FolderSnapshot is what some folders held before somebody acted for a call. Whoever has it must say that something came of it by Tell,
// and then perhaps Decide, or Drop it.
type FolderSnapshot struct {
	keep   *Snapshotter
	call   *callstate.Call
	op     *callstate.Op
	trees  []*folderCopy
	told   bool
	traces *files.DetectedChanges
}

// folderCopy is one folder.
type folderCopy struct {
	*snapshotStore
	usageMarker

	root   disk.Root
	masked map[string]fileStamp // before, by the name below the folder
	unseen record.Unseen        // known after differences
}

// usageMarker is written beside a copy as long as a call relies on it.
type usageMarker struct {
	Call    string        `json:"call"`
	Take    string        `json:"take"`
	Name    string        `json:"name"` // of the root
	Dir     string        `json:"dir"`  // its folder
	Root    disk.Identity `json:"root"`
	Folder  string        `json:"folder"`
	Missing bool          `json:"missing,omitempty"` // there was no such folder
	Masks   []string      `json:"masks,omitempty"`
	Place   string        `json:"place"`
}

// journaledMarker is what the journal knows of a claim.
type journaledMarker struct {
	Place string `json:"place"`
	Take  string `json:"take"`
}

// noteKept begins the keys of notes about what is kept; a take comes after it.
const noteKept = "remit.kept:"

// Take keeps what some folders hold, durable when it returns, and lets no other call of this user have their roots, nor
// those named beside, until this call has ended. A call that may not change all of a folder is denied: somebody acts who
// is not held to less. What the policy masks is neither kept nor looked at.
func (k *Snapshotter) Take(ctx context.Context, tc ctxperm.ToolContext, trees []Folder, beside ...string) (_ *FolderSnapshot, err error) {
	call := tc.CallState(callstate.NewKey())
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
			return nil, fmt.Errorf("what %s holds cannot be kept, so the call is not made: %w", t, err)
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
	return out, call.Note(ctx, noteKept+out.trees[0].Take, notes)
}

// String is the tree as a pattern.
func (t Folder) String() string {
	if t.Folder == "" || t.Folder == "." {
		return "file://" + t.Root + "/**"
	}
	return "file://" + t.Root + "/" + t.Folder + "/**"
}

// Discard is for when nobody has acted. It does nothing once Tell was called.
func (h *FolderSnapshot) Discard() {
	if h == nil || h.told {
		return
	}
	h.release()
	h.op.Leave()
}

// RecordChanges finds what was changed in the folders and records it, durable when it returns. Final says that nobody acts for the
// call any more. Else what still comes cannot be told, nor what the call came to, and that is the error.
func (h *FolderSnapshot) RecordChanges(ctx context.Context, final bool) (err error) {
	if h == nil {
		return nil
	}
	defer h.op.Leave()
	h.told = true
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
			err = errors.Join(err, h.traces.Add(ctx, t.Name, t.root, before))
		}
	}
	err = errors.Join(err, h.traces.Record(ctx, callstate.NewKey(), h.call))
	if err = errors.Join(err, h.noteUnseen(ctx)); err != nil {
		return errors.Join(callstate.ErrOutcomeUnknown, err)
	}
	if err := recorder.Host().Point(ctx, "process.told"); err != nil {
		return errors.Join(callstate.ErrOutcomeUnknown, err)
	}
	if final {
		h.release()
		return nil
	}
	if cfg := h.call.Config(); !cfg.Turns.Then(cfg.ID, h.release) { // once it is written down that nobody can tell
		h.release()
	}
	return callstate.ErrOutcomeUnknown
}

// noteUnseen records what was masked, so that a report can name it. A call that says that it only reads, and changed nothing, has no need of it.
func (h *FolderSnapshot) noteUnseen(ctx context.Context) error {
	if changes, _ := h.traces.Changes(); h.call.Config().Class == effect.Pure && len(changes) == 0 {
		return nil
	}
	var all record.Unseen
	for _, t := range h.trees {
		all.Names, all.Changed = append(all.Names, t.unseen.Names...), append(all.Changed, t.unseen.Changed...)
		all.Came, all.Gone = append(all.Came, t.unseen.Came...), append(all.Gone, t.unseen.Gone...)
	}
	left := 8 // names: enough for a sentence
	for _, some := range []*[]string{&all.Changed, &all.Came, &all.Gone, &all.Names} {
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

// AuthorizeChanges asks for everything that was told, like for what a program wants to change. What is refused is taken back with the call,
// since it has happened; nobody can be waited for any more.
func (h *FolderSnapshot) AuthorizeChanges(ctx context.Context) error {
	if h == nil || h.traces == nil {
		return nil
	}
	err := h.traces.Decide(context.WithoutCancel(ctx), callstate.NewKey(), h.call)
	if err == nil || errors.Is(err, ctxperm.ErrDenied) {
		return err
	}
	return fmt.Errorf("what the call changed is taken back, since it was not allowed in time: %v", err) //nolint:errorlint // whoever waits for an answer would make the call again
}

// Changed lists what Tell found, as resources.
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

// changeFinder finds what interrupted calls changed. It restores nothing: what it finds are files.
type changeFinder struct{ keep *Snapshotter }

// Name returns the name of a scheme that no change has.
func (changeFinder) Name() string { return "kept" }

var errNotKept = errors.New("changes of files are those of their own scheme")

// Settle, Plan and Apply are never reached.
func (changeFinder) Settle(context.Context, effect.Change) (effect.Token, error) {
	return "", errNotKept
}

// Plan refuses.
func (changeFinder) Plan(context.Context, []effect.Change, journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
	return nil, nil, errNotKept
}

// Apply refuses.
func (changeFinder) Apply(_ context.Context, s effect.Step, _ journal.ContentStore) effect.Result {
	return effect.Result{Resource: s.Change.Resource, Outcome: effect.Failed, Why: errNotKept.Error()}
}

var _ revert.ChangeFinder = changeFinder{}

// enter takes the turn of each root in the order of their names, and gives it back when the call has ended.
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
		release, err := cfg.Turns.Take(ctx, cfg.ID, "file://"+name)
		if err != nil {
			return err
		}
		h.op.Then(release)
		leave, err := k.lock(ctx, cfg.Recorder.Host(), dir, cfg.ID)
		if err != nil {
			return err
		}
		if !cfg.Turns.Then(cfg.ID, leave) {
			h.op.Then(leave)
		}
	}
	return nil
}

// lock has a root for a call alone, among all processes of this user. The call may have it already.
func (k *Snapshotter) lock(ctx context.Context, h host.Host, dir, call string) (leave func(), err error) {
	k.mu.Lock()
	g := k.gates[dir]
	if g == nil {
		g = &rootLock{turn: make(chan struct{}, 1)}
		k.gates[dir] = g
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
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	file, err := k.await(ctx, h, dir)
	if err != nil {
		<-g.turn
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	g.holder, g.held, g.file = call, 1, file
	return k.leaving(g), nil
}

// leaving gives a root back when whoever had it last leaves.
func (k *Snapshotter) leaving(g *rootLock) func() {
	return sync.OnceFunc(func() {
		k.mu.Lock()
		g.held--
		over := g.held == 0
		k.mu.Unlock()
		if over {
			_ = g.file.Close() // unlocks
			<-g.turn
		}
	})
}

// rootsOf lists the roots of trees, and some more, in order and each once.
func rootsOf(trees []Folder, beside []string) []string {
	all := slices.Clone(beside)
	for _, t := range trees {
		all = append(all, t.Root)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
