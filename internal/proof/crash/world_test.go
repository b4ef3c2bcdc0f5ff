package crash_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/simdisk"
	"github.com/remit-dev/remit/internal/proof/simjournal"
)

// simState is the state that survives a process.
type simState struct {
	disk    *simdisk.Disk
	journal *simjournal.Store
	remote  *remote
	lives   uint64 // number of processes so far
	cut     bool   // a power failure removed part of the journal
}

func newSimState() *simState {
	w := &simState{disk: simdisk.New(), journal: simjournal.NewStore(), remote: newRemote()}
	createFiles(w.disk.Root())
	return w
}

func (w *simState) clone() *simState {
	return &simState{disk: w.disk.Clone(), journal: w.journal.Clone(), remote: w.remote.clone(), lives: w.lives, cut: w.cut}
}

// watch makes the world call f after each change.
func (w *simState) watch(f func(what string)) {
	w.disk.Watch(f)
	w.journal.Watch(f)
	w.remote.watch = f
}

type digest [16]byte

// digest returns a digest that differs for different states of the world.
func (w *simState) digest() (d digest) {
	sum := sha256.New()
	w.disk.Describe(sum)
	_, _ = io.WriteString(sum, "journal\n")
	w.journal.Describe(sum)
	w.remote.describe(sum)
	copy(d[:], sum.Sum(nil))
	return d
}

// process starts a process on the world, after the end of the previous one.
func (w *simState) process(more ...agent.Option) (*agent.Runtime, context.Context, error) {
	w.lives++
	h := &machine{disk: w.disk, random: rand.New(rand.NewPCG(w.lives, 7)), now: startTime.Add(time.Duration(w.lives) * time.Hour)}
	rt, err := agent.New(append([]agent.Option{
		agent.Host(h), agent.Journal(w.journal.Open()), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Policy(policy), agent.Tools(tools...), agent.Root("workspace", "/sim"), agent.Scheme(rowsBack{w.remote}),
	}, more...)...)
	return rt, context.WithValue(context.Background(), remoteKey{}, w.remote), err
}

var startTime = time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)

// machine is the host of one process: its time and randomness follow from the
// number of earlier processes.
type machine struct {
	disk *simdisk.Disk

	mu     sync.Mutex // never held across a wait
	random *rand.Rand
	now    time.Time
}

func (m *machine) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(time.Millisecond)
	return m.now
}

func (m *machine) Random(p []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var word [8]byte
	for len(p) > 0 {
		binary.LittleEndian.PutUint64(word[:], m.random.Uint64())
		p = p[copy(p, word[:]):]
	}
}

func (*machine) Point(context.Context, string) error { return nil }

// WithTimeout never ends: nothing takes time here.
func (*machine) WithTimeout(ctx context.Context, _ time.Duration, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (m *machine) OpenRoot(string) (disk.Root, error) { return m.disk.Root(), nil }
