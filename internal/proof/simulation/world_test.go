package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/simdisk"
	"github.com/remit-dev/remit/internal/proof/opcheck"
	"github.com/remit-dev/remit/internal/proof/simjournal"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// simState is the state that survives a process.
type simState struct {
	seed    uint64
	sched   *scheduler
	disk    *simdisk.Disk
	journal *simjournal.Store
	service *service
	procs   []*process
	actors  []*actor
	all     sync.WaitGroup
	full    bool // the disk
	until   int  // the step at which full ends

	claims sync.Mutex // never held across a wait: no redo happens between a check and its report
	ledger sync.Mutex // never held across a wait: events are recorded in the order of the journal

	mu            sync.Mutex // never held across a wait
	events        []opcheck.Event
	batches       []journal.Batch // in the order of the journal
	pendingEvents []opcheck.Event
	kept          map[string]bool // content that the journal has
	txns          []string        // begun by agents
	open          []*shared
	redoCounts    map[string]int // how often a redo of a transaction began or ended
	runningRedos  []*runningRedo // redos that have not ended
	syncs         int            // after so many syncs one fails; 0: none does
	writes        int
	conflicts     int
	counts        map[string]int // events, for the tests of the simulation itself
	log           func(string)
	problems      []string
}

// shared is an open transaction to which other agents of its process add calls.
type shared struct {
	proc *process
	txn  txn
}

// runningRedo is a running redo.
type runningRedo struct {
	txn  string
	proc *process
}

type stateKey struct{}

func stateOf(ctx context.Context) *simState {
	w, _ := ctx.Value(stateKey{}).(*simState)
	return w
}

// paths are the files of all agents.
var paths = []string{"a.txt", "b.txt", "c.txt"}

func resourceOf(path string) string { return "file://workspace/" + path }

func newSimState(seed uint64, log func(string)) *simState {
	w := &simState{
		seed: seed, disk: simdisk.New(), journal: simjournal.NewStore(), service: newService(),
		kept: map[string]bool{}, redoCounts: map[string]int{}, counts: map[string]int{}, log: log,
	}
	w.sched = &scheduler{random: rand.New(rand.NewPCG(seed, 1))}
	r := w.disk.Root()
	for _, path := range paths[:2] {
		must(put(r, path, "before "+path))
	}
	must(r.SyncAll())
	return w
}

func put(r disk.Root, name, content string) error {
	f, err := r.Create(name, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, content)
	return errors.Join(err, f.Sync(), f.Close())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// say records an event.
func (w *simState) say(e opcheck.Event) {
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	if w.log != nil {
		w.log(fmt.Sprintf("  %s %s", e.Kind, strings.Join(slices.DeleteFunc([]string{
			e.Txn, e.Call, e.Key, e.Owner, e.Resource, e.Content, e.Text,
		}, func(s string) bool { return s == "" }), " ")))
	}
}

// note counts an event, and calls the follower.
func (w *simState) note(what, about string) {
	w.mu.Lock()
	w.counts[what]++
	w.mu.Unlock()
	if w.log != nil {
		w.log("  ! " + what + " " + about)
	}
}

// wrong reports a problem that no history shows.
func (w *simState) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (w *simState) conflict() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conflicts++
}

func (w *simState) failSync() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.syncs == 0 {
		return false
	}
	w.syncs--
	return w.syncs == 0
}

// content returns a content that is unique in this world.
func (w *simState) content(by string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	return fmt.Sprint(by, " ", w.writes)
}

// look records the content of each path.
func (w *simState) look() map[string]simdisk.File {
	found := w.disk.Files()
	for _, path := range paths {
		w.say(opcheck.Event{Kind: opcheck.Seen, Resource: resourceOf(path), Content: found[path].Content})
	}
	return found
}

// digest is a digest of all events and results.
func (w *simState) digest() uint64 {
	sum := fnv.New64a()
	for _, e := range w.events {
		_, _ = fmt.Fprintln(sum, e)
	}
	w.disk.Describe(sum)
	w.journal.Describe(sum)
	_, _ = fmt.Fprintln(sum, w.sched.steps, w.conflicts, w.counts)
	return sum.Sum64()
}

// began records a transaction that an agent began, or the subjects of a revert:
// not of a redo.
func (w *simState) began(id string, body []byte) {
	if bytes.Contains(body, []byte(`"reverts"`)) {
		var begun record.Begun
		must(json.Unmarshal(body, &begun))
		for _, of := range append(begun.Also, begun.Reverts) {
			w.say(opcheck.Event{Kind: opcheck.Taking, Txn: of})
		}
	} else if !bytes.Contains(body, []byte(`"redoes"`)) {
		w.mu.Lock()
		w.txns = append(w.txns, id)
		w.mu.Unlock()
	}
}

// keep finds the content that the journal has.
func (w *simState) keep() {
	clear(w.kept)
	for _, b := range w.batches {
		for _, blob := range b.Blobs {
			if data, inline := blob.Inline().Get(); inline {
				w.kept[string(data)] = true
			}
		}
	}
}
