package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

// outboxModel is a world in which letters are held and processes die: at any
// scheduling point, after which nothing that the process does has an effect.
type outboxModel struct {
	t     *testing.T
	at    string // for messages
	r     *rand.Rand
	dir   string
	store *store
	host  *hosttest.Host
	tools []tool.Tool

	ended bool
	left  int // scheduling points until the process dies; negative: it does not
	rt    *agent.Runtime
	j     *opening
	tx    *agent.Txn
	txn   string
	marks map[string]int // savepoints, by how many letters there were

	messages []*mailed
	got      []string       // texts, in the order of arrival
	effects  map[string]int // by text: how often it had an effect
	keys     map[string]string
	ends     int
	log      []journal.Batch // what the journal took
	lost     int             // batches that a death took with it
}

// cached is a journal whose batches without a barrier are lost when the process
// dies before the next one with a barrier.
type cached struct {
	*opening
	m *outboxModel
}

func (c cached) Append(ctx context.Context, b journal.Batch) error {
	err := c.opening.Append(ctx, b)
	if err == nil {
		c.m.log = append(c.m.log, b)
	}
	return err
}

// powerCut forgets what no barrier has followed.
func (m *outboxModel) powerCut() {
	kept := len(m.log)
	for kept > 0 && !m.log[kept-1].Durable {
		kept--
	}
	m.lost += len(m.log) - kept
	m.log = m.log[:kept]
	m.store.mem = journal.Memory()
	for _, b := range m.log {
		require.NoError(m.t, m.store.mem.Append(m.t.Context(), b), m.at)
	}
}

// mailed is a letter: what its caller was told, and what becomes of it outside.
type mailed struct {
	text, call  string
	tx          *agent.Txn
	sure        bool // its caller was told that it is held
	maybe, gone bool // it may have been dropped; its caller was told that it was
	delivery    int
	refusals    int
}

const (
	deliveryDone = iota
	deliveryRefused
	deliveryUnconfirmed // it arrives, and the caller gets no response
	deliveryFailed      // it does not arrive, and the caller gets no response
	deliveryKinds
)

var errProcessEnded = errors.New("the process is dead")

func newOutboxModel(t *testing.T, seed uint64) *outboxModel {
	m := &outboxModel{
		t: t, at: fmt.Sprint("seed ", seed), r: rand.New(rand.NewPCG(seed, 11)), dir: workspace(t), store: newStore(), host: hosttest.New(seed),
		effects: map[string]int{}, keys: map[string]string{}, marks: map[string]int{},
	}
	m.host.OnPoint = func(string) error { return m.tick() }
	spec := tool.Spec{EffectClass: effect.Deferrable, Execute: m.deliver, Counters: nil}
	for name, change := range map[string]func(*tool.Spec){
		"mail": func(s *tool.Spec) { s.EffectClass = effect.Pivot },
		"seen": func(s *tool.Spec) { s.Verify = m.look },
		"keyed": func(s *tool.Spec) {
			s.Hints.Idempotent = true
		},
	} {
		s := spec
		s.Name = name
		change(&s)
		tl, err := tool.FromSpec(s)
		m.tools = append(m.tools, mustTool(t, tl, err))
	}
	slices.SortFunc(m.tools, func(a, b tool.Tool) int { return len(a.Name()) - len(b.Name()) })
	m.tools = append(m.tools, builtin.Files()...)
	return m
}

// tick lets the process die when its time has come.
func (m *outboxModel) tick() error {
	if m.left == 0 && !m.ended {
		m.ended = true
		m.ends++
	}
	m.left--
	if m.ended {
		return errProcessEnded
	}
	return nil
}

// deliver performs the effect of a letter. It checks that the letter was held,
// that its commit had begun, and that the journal already holds its start.
func (m *outboxModel) deliver(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	var text string
	require.NoError(m.t, json.Unmarshal(in, &text), m.at)
	if m.tick() != nil {
		return tool.Result{}, errProcessEnded
	}
	txn, err := revert.Load(ctx, m.store.mem, m.txn)
	require.NoError(m.t, err, m.at)
	call := tc.Call()
	c, ok := txn.Call(call.ID)
	require.True(m.t, ok && c.Phase == revert.PhaseStarted && txn.Committing, "%s: %s arrives too early", m.at, text)
	require.Equal(m.t, c.Held.Key, call.Key, m.at)
	if before, sent := m.keys[text]; sent {
		require.Equal(m.t, before, call.Key, m.at)
	}
	m.keys[text] = call.Key
	l := m.message(text)
	switch {
	case l.delivery == deliveryRefused && l.refusals > 0:
		l.refusals--
		return tool.Result{}, tool.NoEffect(errors.New("refused"))
	case l.delivery == deliveryFailed:
		l.delivery = deliveryDone
		return tool.Result{}, errors.New("the connection broke")
	}
	m.got = append(m.got, text)
	if m.effects[text] == 0 || call.Tool != "keyed" { // a key has one effect there
		m.effects[text]++
	}
	if m.tick() != nil {
		return tool.Result{}, errProcessEnded
	}
	if l.delivery == deliveryUnconfirmed {
		l.delivery = deliveryDone
		return tool.Result{}, errors.New("the connection broke")
	}
	return tool.Text("sent"), nil
}

func (m *outboxModel) look(_ context.Context, s verify.Subject) verify.Verdict {
	var text string
	require.NoError(m.t, json.Unmarshal(s.Input, &text))
	if m.effects[text] > 0 {
		return verify.Applied()
	}
	return verify.Absent()
}

func (m *outboxModel) message(text string) *mailed {
	i := slices.IndexFunc(m.messages, func(l *mailed) bool { return l.text == text })
	require.GreaterOrEqual(m.t, i, 0, m.at)
	return m.messages[i]
}

// process begins a new life, which may be short.
func (m *outboxModel) process() {
	if m.j != nil {
		require.NoError(m.t, m.j.Close())
		require.NoError(m.t, m.rt.Close())
	}
	if m.ended {
		m.powerCut()
	}
	m.ended, m.left = false, -1
	if m.ends < 6 && m.r.IntN(3) > 0 {
		m.left = m.r.IntN(160)
	}
	m.j = m.store.open(func(journal.Batch) bool { return m.ended })
	rt, err := agent.New(quiet(), agent.Host(m.host), agent.Journal(cached{m.j, m}), agent.Policy(holdAll()), agent.Tools(m.tools...), agent.Root("workspace", m.dir))
	require.NoError(m.t, err)
	m.rt = rt
}

// recovered is the transaction in a new process, nil where it is over.
func (m *outboxModel) recovered() *revert.Txn {
	for {
		m.process()
		if _, err := m.rt.Recover(m.t.Context()); err != nil {
			require.True(m.t, m.ended, "%s: %v", m.at, err)
			continue
		}
		txn, err := revert.Load(m.t.Context(), m.store.mem, m.txn)
		if errors.Is(err, journal.ErrNotFound) { // the caller has got no outcome
			return nil
		}
		require.NoError(m.t, err, m.at)
		switch {
		case txn.End != "":
			return nil
		case txn.Aborting:
			if m.revert(func() (revert.Report, error) { return m.rt.Revert(m.t.Context(), m.txn, revert.Options{}) }) {
				return nil
			}
			continue
		}
		tx, err := m.rt.ResumeTxn(m.t.Context(), m.txn)
		if err != nil {
			require.True(m.t, m.ended, "%s: %v", m.at, err)
			continue
		}
		for len(tx.Nested()) > 0 {
			in := tx.Nested()[0]
			for len(in.Nested()) > 0 {
				in = in.Nested()[0]
			}
			if err = in.Commit(m.t.Context()); err != nil {
				break
			}
		}
		if err != nil {
			require.True(m.t, m.ended, "%s: %v", m.at, err)
			continue
		}
		m.tx = tx
		return txn
	}
}

// revert reverts it, unless the process dies.
func (m *outboxModel) revert(back func() (revert.Report, error)) bool {
	_, err := back()
	if m.ended {
		return false
	}
	if err != nil {
		require.ErrorIs(m.t, err, agent.ErrPartialRevert, m.at)
	}
	return true
}

// build holds letters, and drops some of them again, in transactions inside one
// another. It reports false when the process died.
func (m *outboxModel) build(s *agent.Session) bool {
	ctx := m.t.Context()
	open := []*agent.Txn{m.tx}
	inside := func(l *mailed, tx *agent.Txn) bool { return slices.Index(open, l.tx) >= slices.Index(open, tx) }
	drop := func(which func(*mailed) bool, do func() error) {
		var some []*mailed
		for _, l := range m.messages {
			if which(l) {
				l.maybe = true
				some = append(some, l)
			}
		}
		if err := do(); err == nil {
			for _, l := range some {
				l.gone = true
			}
		} else {
			require.True(m.t, m.ended, "%s: %v", m.at, err)
		}
	}
	for range 14 {
		top := open[len(open)-1]
		switch r := m.r.IntN(12); {
		case r < 6:
			m.hold(top)
		case r == 6:
			_, err := top.Invoke(ctx, "file_write", tool.Args{"path": "f.txt", "content": fmt.Sprint(len(m.messages))})
			require.True(m.t, err == nil || m.ended, "%s: %v", m.at, err)
		case r == 7 && len(open) < 4:
			who := s
			if m.r.IntN(2) == 0 {
				child, err := s.Delegate(ctx, perm.Principal{ID: "helper"})
				if err != nil {
					break
				}
				who = child
			}
			if in, err := top.BeginNested(ctx, who); err == nil {
				open = append(open, in)
			}
		case r == 8 && len(open) > 1:
			if top.Commit(ctx) == nil {
				for _, l := range m.messages {
					if l.tx == top {
						l.tx = open[len(open)-2]
					}
				}
				open = open[:len(open)-1]
			}
		case r == 9 && len(open) > 1:
			drop(func(l *mailed) bool { return l.sure && inside(l, top) }, func() error { _, err := top.Revert(ctx, revert.Options{}); return err })
			open = open[:len(open)-1]
		case r == 10 && len(open) == 1:
			if m.r.IntN(2) == 0 && len(m.marks) > 0 {
				n := m.marks["here"]
				drop(func(l *mailed) bool { return slices.Index(m.messages, l) >= n }, func() error { _, err := m.tx.RevertTo(ctx, "here"); return err })
			} else if m.tx.Savepoint(ctx, "here") == nil {
				m.marks["here"] = len(m.messages)
			}
		case r == 11 && len(open) == 1 && len(m.messages) > 0:
			one := m.messages[m.r.IntN(len(m.messages))]
			if one.sure && !one.maybe {
				drop(func(l *mailed) bool { return l == one }, func() error {
					_, err := m.tx.Revert(ctx, revert.Options{Calls: []string{one.call}})
					return err
				})
			}
		}
		if m.ended {
			return false
		}
	}
	for ; len(open) > 1; open = open[:len(open)-1] {
		if err := open[len(open)-1].Commit(ctx); err != nil {
			require.True(m.t, m.ended, "%s: %v", m.at, err)
			return false
		}
	}
	return true
}

func (m *outboxModel) hold(tx *agent.Txn) {
	l := &mailed{text: fmt.Sprint("m", len(m.messages)+1), tx: tx, delivery: m.r.IntN(deliveryKinds), refusals: 1 + m.r.IntN(2)}
	if m.r.IntN(2) == 0 {
		l.delivery = deliveryDone
	}
	m.messages = append(m.messages, l)
	out, err := tx.Invoke(m.t.Context(), []string{"mail", "seen", "keyed"}[m.r.IntN(3)], l.text)
	l.call = out.Call
	if err == nil {
		require.Equal(m.t, tool.StatusHeld, out.Status, m.at)
		l.sure = true
		return
	}
	require.True(m.t, m.ended, "%s: %v", m.at, err)
}

// finish commits, as often as it takes, or reverts.
func (m *outboxModel) finish(alive bool) {
	ctx := m.t.Context()
	for n := 0; ; n++ {
		require.Less(m.t, n, 60, "%s: it does not come to an end", m.at)
		if m.ended || !alive {
			if m.recovered() == nil {
				return
			}
			alive = true
		}
		if m.r.IntN(12) == 0 {
			for _, l := range m.messages {
				l.maybe = true
			}
			if m.revert(func() (revert.Report, error) { return m.tx.Revert(ctx, revert.Options{}) }) {
				return
			}
			continue
		}
		err := m.tx.Commit(ctx)
		switch {
		case m.ended:
			continue
		case err == nil:
			return
		}
		require.ErrorIs(m.t, err, agent.ErrNotReleased, m.at)
		m.unstick()
	}
}

// unstick is what a person may do about a commit that stopped, or not.
func (m *outboxModel) unstick() {
	released := m.tx.Released()
	last := released[len(released)-1]
	l := m.message(m.text(last.Call))
	switch m.r.IntN(4) {
	case 0:
		l.maybe = true
		_, _ = m.rt.Revert(m.t.Context(), last.Call, revert.Options{})
	case 1:
		if last.Status == tool.StatusUnknown {
			err := m.rt.ResolveUnknown(m.t.Context(), last.Call, record.Decided{Applied: m.effects[l.text] > 0, By: "boss", Why: "looked"})
			require.True(m.t, err == nil || m.ended, "%s: %v", m.at, err)
		}
	}
}

func (m *outboxModel) text(call string) string {
	_, c, err := revert.LoadCall(m.t.Context(), m.store.mem, call)
	require.NoError(m.t, err, m.at)
	var text string
	require.NoError(m.t, json.Unmarshal(c.Held.Input, &text))
	return text
}

// judge holds what arrived against what callers were told and what the journal says.
func (m *outboxModel) judge() revert.TxnState {
	txn, err := revert.Load(m.t.Context(), m.store.mem, m.txn)
	if errors.Is(err, journal.ErrNotFound) {
		require.False(m.t, slices.ContainsFunc(m.messages, func(l *mailed) bool { return l.sure }), m.at)
		return ""
	}
	require.NoError(m.t, err, m.at)
	phases := map[string]*revert.Call{}
	var order []*revert.Call
	for _, c := range txn.Calls {
		if c.Held != nil {
			phases[m.text(c.Ref.Call)] = c
			order = append(order, c)
		}
	}
	slices.SortFunc(order, func(a, b *revert.Call) int { return a.Held.Sequence - b.Held.Sequence })
	for _, l := range m.messages {
		c, arrived := phases[l.text], m.effects[l.text]
		require.LessOrEqual(m.t, arrived, 1, "%s: %s was sent twice", m.at, l.text)
		require.True(m.t, c != nil || !l.sure, "%s: %s is lost", m.at, l.text)
		if c == nil {
			require.Zero(m.t, arrived, m.at)
			continue
		}
		if l.gone {
			require.Zero(m.t, arrived, "%s: %s was dropped, and arrived", m.at, l.text)
			require.NotNil(m.t, c.Dropped, "%s: %s", m.at, l.text)
		}
		require.True(m.t, l.maybe || c.Dropped == nil, "%s: nobody has dropped %s", m.at, l.text)
		switch c.Phase {
		case revert.PhaseDone:
			require.Equal(m.t, 1, arrived, "%s: %s is done", m.at, l.text)
		case revert.PhaseUnknown:
		case revert.PhaseDropped, revert.PhaseFailed:
			require.Zero(m.t, arrived, "%s: %s is %s", m.at, l.text, c.Phase)
			require.NotNil(m.t, c.Dropped, "%s: %s is %s", m.at, l.text, c.Phase)
		default:
			m.t.Fatalf("%s: %s is %s", m.at, l.text, c.Phase)
		}
	}
	// What arrived came in the order in which it was held.
	var want, first []string
	for _, c := range order {
		if text := m.text(c.Ref.Call); m.effects[text] > 0 {
			want = append(want, text)
		}
	}
	for _, text := range m.got {
		if !slices.Contains(first, text) {
			first = append(first, text)
		}
	}
	require.Equal(m.t, want, first, m.at)
	if txn.State() == revert.TxnReverted {
		require.Empty(m.t, m.got, "%s: nothing was left", m.at)
	}
	return txn.State()
}

// TestHeldCallsThroughCrashes holds, drops and releases letters in random
// transactions, by processes that die at any scheduling point, with all that no barrier has followed,
// one after the other, and services that refuse, lose and forget. No letter arrives before its commit,
// nor twice, nor out of order, nor after it was dropped; none is lost in silence;
// what the journal says fits what arrived.
func TestHeldCallsThroughCrashes(t *testing.T) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	seeds := uint64(statcheck.Size(50, 20_000))
	states, deaths, lost, arrived, dropped := map[revert.TxnState]int{}, 0, 0, 0, 0
	for seed := range seeds {
		m := newOutboxModel(t, seed)
		m.process()
		s, err := m.rt.Session(t.Context(), perm.Principal{ID: "coder"})
		if err == nil {
			m.tx, err = s.Begin(t.Context())
		}
		if err != nil {
			require.True(t, m.ended)
			require.NoError(t, m.rt.Close())
			continue
		}
		m.txn = m.tx.ID()
		m.finish(m.build(s))
		states[m.judge()]++
		rep, err := revert.Fsck(t.Context(), m.store.mem, revert.FsckOptions{Found: func(p revert.Problem) { t.Errorf("%s: %+v", m.at, p) }})
		require.NoError(t, err, "%s: %+v", m.at, rep)
		deaths, lost, arrived = deaths+m.ends, lost+m.lost, arrived+len(m.got)
		for _, l := range m.messages {
			if l.gone {
				dropped++
			}
		}
		require.NoError(t, m.rt.Close())
	}
	t.Logf("%v, %d deaths, %d batches lost, %d arrivals, %d dropped", states, deaths, lost, arrived, dropped)
	require.Positive(t, states[revert.TxnCommitted])
	require.Positive(t, states[revert.TxnReverted])
	require.Positive(t, states[revert.TxnRevertedPartial])
	require.Greater(t, deaths, int(seeds)/2)
	require.Positive(t, lost)
	require.Greater(t, dropped, int(seeds)/2)
}
