package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/disk/simdisk"
	"github.com/remit-dev/remit/internal/toolstate"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// The oracle follows the promises of the design, not the code:
//
//	I1   no effect without an earlier durable record that announced it
//	I2   no code starts after a denial
//	I3   a key has at most one forward effect
//	I4   a reverted resource is as before, times of files included
//	I5   a report of a revert lists exactly what is left
//	I7   recovering twice has the same result as once
//	I8   every journal that a crash can leave recovers
//	I9   a tree head that a client got is a prefix of the later log
//	I10  recovery ends, and leaves at most the one call unknown that was in flight
//
// One more requirement follows from them and is stricter than each: if nothing
// is in flight, the world equals the content of the journal, and both are as
// new as every response to a client. For a tool's state that means: it contains
// the tags of the calls that are done and not reverted, and none of a failed
// call. I6, that no change of another actor is lost, is checked in the states
// in which another actor wrote between the crash and the recovery.

// before is the initial state, with times.
var (
	before     = newSimState().disk.Files()
	rowsBefore = newSimState().remote.table()
)

// findings are the problems of one state.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// situation is the input of a check: the plan, the world, and the content of
// the journal.
type situation struct {
	plan
	w     *simState
	view  clientView
	txn   *revert.Txn    // nil: not on the journal
	calls []*revert.Call // of the plan; nil: not on the journal
	idle  []bool         // calls that were done without any change
	findings
}

// look reads the journal.
func (p plan) look(ctx context.Context, w *simState, rt *agent.Runtime, t clientView) *situation {
	s := &situation{plan: p, w: w, view: t, calls: make([]*revert.Call, len(p.calls)), idle: make([]bool, len(p.calls))}
	if t.txn == "" {
		return s
	}
	txn, err := revert.Load(ctx, rt.Journal(), t.txn)
	if errors.Is(err, journal.ErrNotFound) {
		return s
	}
	if err != nil {
		s.add("the journal cannot be read: %v", err)
		return s
	}
	s.txn = txn
	var numbered []int // the plan's calls with a number on the journal
	for i := range p.calls {
		if i >= len(t.calls) || t.calls[i] != tool.StatusInvalid {
			numbered = append(numbered, i)
		}
	}
	for _, c := range txn.Calls {
		switch {
		case c.Started != nil:
			s.calls[numbered[c.Started.Sequence-1]] = c
		case c.Held != nil:
			s.calls[numbered[c.Held.Sequence-1]] = c
		}
	}
	s.idle = s.without()
	return s
}

// without finds the calls that were done without a change, because everything
// was already as wanted: none of them is reverted.
func (s *situation) without() []bool {
	idle, files := make([]bool, len(s.calls)), treeOf(before)
	for i, c := range s.calls {
		done := c != nil && c.Phase == revert.PhaseDone || i < len(s.view.calls) && s.view.calls[i] == tool.StatusDone
		if done && s.plan.calls[i].do != nil {
			was := maps.Clone(files)
			idle[i] = s.plan.calls[i].do(files) && maps.Equal(was, files)
		}
	}
	return idle
}

// judge compares the world with the journal and with the responses to the
// client, when nothing is in flight.
func (p plan) judge(ctx context.Context, w *simState, rt *agent.Runtime, t clientView) *situation {
	s := p.look(ctx, w, rt, t)
	if len(s.findings) > 0 {
		return s
	}
	s.ends()
	s.refusals()
	s.over(ctx, rt)
	unknown := 0
	for i, c := range s.calls {
		s.kept(i, c)
		s.counts(i)
		if p.calls[i].outside {
			s.outside(i, c)
		}
		if c != nil && c.Phase == revert.PhaseUnknown && (i >= len(t.calls) || t.calls[i] != tool.StatusUnknown) {
			unknown++
		}
	}
	if crashes := int(w.lives) - 1; unknown > crashes {
		s.add("%d calls are unknown, and there were %d crashes with at most one in flight", unknown, crashes)
	}
	s.inHandles()
	s.held(ctx, rt)
	return s
}

// ends compares the end that the client knows with the journal.
func (s *situation) ends() {
	is := revert.TxnState("")
	if s.txn != nil {
		is = s.txn.State()
	}
	reverted := revert.TxnReverted
	if s.view.partial {
		reverted = revert.TxnRevertedPartial
	}
	ok := true
	switch s.view.stage {
	case calling:
		ok = is == "" || is == revert.TxnOpen
	case committing:
		ok = is == "" || is == revert.TxnOpen || is == revert.TxnCommitted
	case committed, redone:
		ok = is == revert.TxnCommitted || s.forgotten(is)
	case aborting:
		ok = is == "" || is == revert.TxnOpen || is == revert.TxnReverted || is == revert.TxnRevertedPartial
	case reverting, redoing: // it may be open: its process died before its end
	case aborted, revertEnded:
		ok = is == reverted
	}
	if !ok {
		s.add("the transaction is %q at stage %d", is, s.view.stage)
	}
}

// forgotten reports whether a power failure removed the end of a transaction
// that only read. That record has no barrier, and was the last one. The client
// then knows nothing but the reads.
func (s *situation) forgotten(is revert.TxnState) bool {
	return s.w.cut && s.view.stage == committed && (is == "" || is == revert.TxnOpen) && s.onlyReads()
}

// onlyReads reports whether all calls of the plan had no effect and were
// allowed.
func (p plan) onlyReads() bool {
	return !slices.ContainsFunc(p.calls, func(k callKind) bool { return !k.harmless() || k.denied || k.waits })
}

// refusals requires that each denial that the client got is on the journal.
func (s *situation) refusals() {
	told, there := 0, 0
	for _, is := range s.view.calls {
		if is == tool.StatusDenied {
			told++
		}
	}
	if s.txn != nil {
		for _, c := range s.txn.Calls {
			if c.Phase == revert.PhaseDenied {
				there++
			}
		}
	}
	if there < told {
		s.add("%d calls were told to be denied, and the journal knows of %d", told, there)
	}
}

// over requires that nothing is unfinished after an end that the client knows.
func (s *situation) over(ctx context.Context, rt *agent.Runtime) {
	switch s.view.stage {
	case committed, aborted, revertEnded, redone:
		if s.txn != nil && s.forgotten(s.txn.State()) {
			return
		}
		open, err := rt.Journal().Unfinished(ctx)
		if err != nil || len(open) > 0 {
			s.add("the client was told of an end, and unfinished are %v: %v", open, err)
		}
	default:
	}
}

// remembered requires that the journal still holds the result of a recovery
// after the next crash, because a client may know it.
func (p plan) remembered(ctx context.Context, rt *agent.Runtime, t clientView) (f findings) {
	for _, found := range t.settled {
		_, c, err := revert.LoadCall(ctx, rt.Journal(), found.Call)
		if err != nil {
			f.add("recovery settled call %s as %s, and now: %v", found.Call, found.Outcome, err)
		} else if c.Phase != found.Outcome && (c.Held == nil || !ended(ctx, rt, found)) {
			f.add("recovery settled call %s as %s, and the journal says %s", found.Call, found.Outcome, c.Phase)
		}
	}
	return f
}

// ended reports whether the result of a recovery is on the journal. A held call
// may have been released again after it, if it had no effect or its tool is
// idempotent.
func ended(ctx context.Context, rt *agent.Runtime, found revert.RecoveredCall) bool {
	for e, err := range rt.Journal().Entries(ctx, journal.Query{Call: found.Call, Kinds: []record.Kind{record.KindFailed, record.KindUnknown}}) {
		if err == nil && string(e.Header.Kind) == string(found.Outcome) {
			return true
		}
	}
	return false
}

// kept requires that a call that the client knows is on the journal. A call
// without an effect needs no barrier, and may be missing.
func (s *situation) kept(i int, c *revert.Call) {
	if i >= len(s.view.calls) || s.idle[i] || s.calls[i] == nil && s.plan.calls[i].harmless() {
		return
	}
	phase := revert.Phase("")
	if c != nil {
		phase = c.Phase
	}
	ok := true
	switch s.view.calls[i] {
	case tool.StatusDone:
		ok = phase == revert.PhaseDone
	case tool.StatusHeld:
		ok = phase != "" && (phase != revert.PhaseHeld || s.view.stage != committed)
	case tool.StatusFailed, tool.StatusVerifyFailed:
		ok = phase == revert.PhaseFailed || phase == ""
	case tool.StatusUnknown:
		ok = phase == revert.PhaseUnknown
	default: // denied and invalid calls have no effect; counts checks that
	}
	if !ok {
		s.add("call %d (%s) was told to be %s, and the journal says %q", i, s.plan.calls[i].name, s.view.calls[i], phase)
	}
}

// counts compares the effects outside with the allowed number.
func (s *situation) counts(i int) {
	done, undone, entered := s.w.remote.of(tagOf(i))
	if done > 1 || undone > done {
		s.add("call %d (%s) had its effect %d times, and it was reverted %d times", i, s.plan.calls[i].name, done, undone)
	}
	if s.plan.calls[i].denied && entered > 0 {
		s.add("call %d was denied, and entered", i)
	}
}

// outside compares the service with the record of a call.
func (s *situation) outside(i int, c *revert.Call) {
	done, undone, _ := s.w.remote.of(tagOf(i))
	there, phase := done-undone, revert.Phase("")
	if c != nil {
		phase = c.Phase
	}
	var ok bool
	switch phase {
	case revert.PhaseDone:
		ok = there == 1 != c.IsReverted()
	case revert.PhaseUnknown:
		told := i < len(s.view.calls) && s.view.calls[i] == tool.StatusUnknown
		if ok = told || !s.plan.calls[i].verified; !ok {
			s.add("call %d (%s) is unknown, and can be asked", i, s.plan.calls[i].name)
		}
		return
	case revert.PhaseStarted:
		ok = false
	default:
		ok = there == 0
	}
	if !ok {
		s.add("call %d (%s) is %q (undone %v), and its effect was there %d times and reverted %d times",
			i, s.plan.calls[i].name, phase, c != nil && c.IsReverted(), done, undone)
	}
}

// inHandles requires that files and rows are the initial ones with the present
// effects of the calls, and nothing else. If there are no effects, the times of
// the files must be the initial ones too.
func (s *situation) inHandles() {
	files, rows, some := treeOf(before), maps.Clone(rowsBefore), false
	for i, c := range s.calls {
		k := s.plan.calls[i]
		if c == nil || !k.inHandles() || s.idle[i] {
			continue
		}
		switch {
		case c.Phase == revert.PhaseDone && !c.IsReverted():
			if k.tags {
				continue // held checks these
			}
			if k.rows {
				rows = map[string]string{"1": c.Ref.Call, "3": "three"}
			} else if some = true; !k.do(files) {
				s.add("%s cannot have been done here", k.name)
			}
		case c.Phase != revert.PhaseDone && c.Phase != revert.PhaseFailed:
			s.add("call %d (%s) is %s: versions tell what it did", i, k.name, c.Phase)
		}
	}
	if got := s.w.remote.table(); !maps.Equal(rows, got) {
		s.add("rows are %v, and want %v", got, rows)
	}
	found := s.w.disk.Files()
	if !some && !maps.EqualFunc(before, found, sameFile) {
		s.add("files are not as they were before: %s", strings.Join(difference(before, found), "; "))
	}
	if got := treeOf(found); some && !maps.Equal(files, got) {
		s.add("files are %v, and want %v", list(got), list(files))
	}
}

// held requires that the tool's state contains the tags of the calls that are
// done and not reverted, in order, and no other.
func (s *situation) held(ctx context.Context, rt *agent.Runtime) {
	if s.txn == nil {
		return
	}
	var want, got []string
	for i, c := range s.calls {
		if c != nil && s.plan.calls[i].tags && c.Phase == revert.PhaseDone && !c.IsReverted() {
			want = append(want, tagOf(i))
		}
	}
	_, content, err := toolstate.Read(ctx, rt.Journal(), s.txn.Session, counted)
	if err == nil && content != nil {
		err = json.Unmarshal(content, &got)
	}
	if err != nil || !slices.Equal(want, got) {
		s.add("the state is %v, and want %v: %v", got, want, err)
	}
}

// left requires that a report lists exactly the calls with remaining effects.
func (s *situation) left(rep revert.Report) {
	want, got := map[string]bool{}, map[string]bool{}
	for i, c := range s.calls {
		if c == nil {
			continue
		}
		done, undone, _ := s.w.remote.of(tagOf(i))
		handled := s.plan.calls[i].inHandles() && !s.idle[i] && c.Phase == revert.PhaseDone && !c.IsReverted()
		if done > undone || c.Phase == revert.PhaseUnknown || handled {
			want[c.Ref.Call] = true
		}
	}
	for _, item := range rep.NotReverted() {
		got[item.Call] = true
	}
	if !maps.Equal(want, got) {
		s.add("the report lists %v, and what is left is of %v: %+v", got, want, rep)
	}
	if rep.Complete() != (len(want) == 0) {
		s.add("the report says complete %v, and %d calls are left", rep.Complete(), len(want))
	}
}

// announced requires that every effect that a crash left is on the journal.
func (p plan) announced(ctx context.Context, w *simState, rt *agent.Runtime) (f findings) {
	var records strings.Builder
	for e, err := range rt.Journal().Entries(ctx, journal.Query{}) {
		if err != nil {
			f.add("the journal cannot be read: %v", err)
			return f
		}
		switch e.Header.Kind {
		case record.KindStarted, record.KindChanged, record.KindReverting:
			_, _ = records.Write(e.Body)
		default:
		}
	}
	said := records.String()
	for name, is := range w.disk.Files() {
		if was, ok := before[name]; ok && sameFile(was, is) {
			continue
		}
		// The content of a moved directory is announced with the directory.
		base, _, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".new"), ".weak")
		if !strings.Contains(said, `/`+name+`"`) && !strings.Contains(said, `"`+base+`"`) {
			f.add("%s is not as before, and no record announces it", name)
		}
	}
	for i := range p.calls {
		if done, _, _ := w.remote.of(tagOf(i)); done > 0 && !strings.Contains(said, `"input":"`+tagOf(i)+`"`) {
			f.add("call %d (%s) had an effect, and no record announces it", i, p.calls[i].name)
		}
	}
	if !maps.Equal(w.remote.table(), rowsBefore) && !strings.Contains(said, rowScheme) {
		f.add("rows were changed, and no record announces it")
	}
	return f
}

func sameFile(a, b simdisk.File) bool {
	return a.Type == b.Type && a.Perm == b.Perm && a.Mtime.Equal(b.Mtime) && a.Content == b.Content && maps.Equal(a.Attributes, b.Attributes)
}

func difference(want, got map[string]simdisk.File) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if is, ok := got[name]; !ok || !sameFile(want[name], is) {
			out = append(out, fmt.Sprintf("%s was %v and is %v", name, want[name], is))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			out = append(out, name+" is new")
		}
	}
	return out
}

func list(f fileTree) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		out = append(out, fmt.Sprintf("%s %v %q", name, f[name].perm, f[name].content))
	}
	return out
}
