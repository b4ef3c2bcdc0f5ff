package stats_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/stats"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// cast returns tools whose calls each end in a different way.
func cast(t require.TestingT) []tool.Tool {
	back := tool.RevertWith("1", func(context.Context, tool.RevertContext) error { return nil })
	var tools []tool.Tool
	for name, opts := range map[string][]tool.Option{
		"pure": {tool.Pure()}, "box": {tool.Effect(effect.Compensable), back}, "refused": {tool.Pure()}, "breaks": {tool.Pure()},
		"lost": {tool.Effect(effect.Pivot)}, "stuck": {tool.Effect(effect.Compensable), tool.RevertWith("1", func(context.Context, tool.RevertContext) error { return errors.New("no") })},
		"false": {tool.Effect(effect.Compensable), back, func(s *tool.Spec) {
			s.Verify = func(context.Context, verify.Subject) verify.Verdict { return verify.Absent("it is not there") }
		}},
	} {
		made, err := tool.Create(name, "Does "+name+".", func(context.Context, string) (string, error) {
			if name == "breaks" || name == "lost" {
				return "", errors.New("broken")
			}
			return "x", nil
		}, opts...)
		require.NoError(t, err)
		tools = append(tools, made)
	}
	return tools
}

// modelRun is a run for which the test counts by itself, from what callers see.
type modelRun struct {
	*rapid.T
	rt       *agent.Runtime
	s        *agent.Session
	expected map[string]*stats.ToolStats
	calls    []tool.Outcome
	ended    map[string]bool // transactions
	ratings  map[[2]string]provenance.Rating
	back     map[string]bool // by call: reverted, whole or not
	gone     map[string]bool // erased
}

func newModelRun(t *rapid.T) *modelRun {
	rt, err := agent.New(agent.Tools(cast(t)...), agent.Log(slog.New(slog.DiscardHandler)), agent.Policy(perm.EngineFunc(
		func(_ context.Context, r perm.Request) (perm.Decision, error) {
			effect := perm.Allow
			if r.Tool.Name == "refused" {
				effect = perm.Deny
			}
			return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "so"}}}), nil
		})))
	require.NoError(t, err)
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	return &modelRun{
		T: t, rt: rt, s: s, expected: map[string]*stats.ToolStats{}, ended: map[string]bool{},
		ratings: map[[2]string]provenance.Rating{}, back: map[string]bool{}, gone: map[string]bool{},
	}
}

func (w *modelRun) txn() {
	ctx := context.Background()
	tx, err := w.s.Begin(ctx)
	require.NoError(w, err)
	for range rapid.IntRange(1, 4).Draw(w.T, "calls") {
		name := rapid.SampledFrom([]string{"pure", "box", "refused", "breaks", "lost", "stuck", "false", "none"}).Draw(w.T, "tool")
		out, _ := tx.Invoke(ctx, name, "x") // what it came to is in the outcome
		w.calls = append(w.calls, out)
		if name == "none" {
			name = ""
		}
		if w.expected[name] == nil {
			w.expected[name] = &stats.ToolStats{}
		}
		b := w.expected[name]
		b.Calls++
		switch out.Status {
		case tool.StatusDone:
			b.Done++
		case tool.StatusDenied:
			b.Denied++
		case tool.StatusInvalid:
			b.Invalid++
		case tool.StatusFailed:
			b.Failed++
		case tool.StatusVerifyFailed:
			b.VerifyFailed++
		case tool.StatusUnknown:
			b.Unknown++
		default:
			w.Fatalf("a call of %s ended as %s", name, out.Status)
		}
	}
	if rapid.Bool().Draw(w.T, "commit") {
		require.NoError(w, tx.Commit(ctx))
	} else {
		rep, err := tx.Revert(ctx, revert.Options{})
		require.True(w, err == nil || errors.Is(err, agent.ErrPartialRevert), "%v", err)
		w.took(rep)
	}
	w.ended[tx.ID()] = true
}

func (w *modelRun) took(rep revert.Report) {
	for _, item := range rep.Items {
		w.back[item.Call] = item.Outcome.Clean()
	}
}

func (w *modelRun) one() (tool.Outcome, bool) {
	if len(w.calls) == 0 {
		return tool.Outcome{}, false
	}
	out := rapid.SampledFrom(w.calls).Draw(w.T, "call")
	return out, !w.gone[out.Call]
}

func (w *modelRun) judge() {
	out, ok := w.one()
	if !ok {
		return
	}
	f := provenance.Feedback{Call: out.Call, Verdict: rapid.SampledFrom(provenance.Ratings()).Draw(w.T, "verdict"), By: rapid.SampledFrom([]string{"kim", "coder"}).Draw(w.T, "by")}
	_, err := w.rt.Feedback(context.Background(), f)
	require.NoError(w, err)
	w.ratings[[2]string{f.Call, f.By}] = f.Verdict
}

func (w *modelRun) revert() {
	out, ok := w.one()
	if !ok {
		return
	}
	rep, err := w.rt.Revert(context.Background(), out.Call, revert.Options{})
	if err == nil || errors.Is(err, agent.ErrPartialRevert) {
		w.took(rep)
	}
}

func (w *modelRun) erase() {
	out, ok := w.one()
	if !ok || out.Status == tool.StatusUnknown {
		return
	}
	_, err := w.rt.Erase(context.Background(), out.Call, "kim", "no reason")
	require.NoError(w, err)
	w.gone[out.Call] = true
}

// close adds up what was said and reverted of what is still there.
func (w *modelRun) close() {
	names := map[string]string{}
	for _, out := range w.calls {
		if names[out.Call] = out.Tool; out.Tool == "none" {
			names[out.Call] = ""
		}
		clean, taken := w.back[out.Call]
		if w.gone[out.Call] || !taken || out.Status != tool.StatusDone { // what is unknown and unconfined is never tried
			continue
		}
		if b := w.expected[names[out.Call]]; clean {
			b.Reverted++
		} else {
			b.RevertedPartial++
		}
	}
	for key, verdict := range w.ratings {
		if w.gone[key[0]] {
			continue
		}
		b := w.expected[names[key[0]]]
		if b.Feedback == nil {
			b.Feedback = map[provenance.Rating]int{}
		}
		b.Feedback[verdict]++
		if key[1] == "coder" {
			b.SelfRated++
		}
	}
}

// slowTimes looks through all records, and keeps everything.
func slowTimes(t require.TestingT, j journal.Journal) map[string][]time.Duration {
	began, names, out := map[string]time.Time{}, map[string]string{}, map[string][]time.Duration{}
	for e, err := range j.Entries(context.Background(), journal.Query{}) {
		require.NoError(t, err)
		if e.Erased != "" {
			continue
		}
		r, err := record.Unseal(e)
		require.NoError(t, err)
		switch b := r.Body.(type) {
		case *record.Started:
			began[r.Call], names[r.Call] = r.At, b.Tool.Name
		case *record.Done:
			out[names[r.Call]] = append(out[names[r.Call]], r.At.Sub(began[r.Call]))
		}
	}
	return out
}

// nearest is the percentile as a textbook has it.
func nearest(sorted []time.Duration, percent int) time.Duration {
	for i, d := range sorted {
		if (i+1)*100 >= percent*len(sorted) {
			return d
		}
	}
	return 0
}

// TestStats compares the counts of the journal with those of the callers, and
// the times with a scan of all records.
func TestStats(t *testing.T) {
	statcheck.Checks(t, 100, 3000)
	rapid.Check(t, func(rt *rapid.T) {
		w := newModelRun(rt)
		defer func() { _ = w.rt.Close() }()
		for range rapid.IntRange(1, 7).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0, 1, 2:
				w.txn()
			case 3:
				w.judge()
			case 4:
				w.revert()
			case 5:
				w.erase()
			}
		}
		w.close()
		rows, err := stats.Read(context.Background(), w.rt.Journal())
		require.NoError(rt, err)
		slow := slowTimes(rt, w.rt.Journal())
		require.Len(rt, rows, len(w.expected))
		for _, got := range rows {
			want := *w.expected[got.Name]
			want.Name, want.Digest, want.Last = got.Name, got.Digest, got.Last
			if want.Feedback == nil {
				want.Feedback = map[provenance.Rating]int{}
			}
			all := slow[got.Name]
			slices.Sort(all)
			want.Time = stats.Latency{Count: len(all), P50: nearest(all, 50), P99: nearest(all, 99), Exact: true}
			require.Equal(rt, want, got, got.Name)
			require.Equal(rt, got.Name == "", got.Digest == "")
		}
	})
}

// TestTimes: the histogram is never too short, and less than a 64th too long.
func TestTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 99, 100, 101, stats.Kept - 1, stats.Kept, stats.Kept + 1, 3 * stats.Kept} {
		list := make([]time.Duration, n)
		for i := range list {
			list[i] = time.Duration(random.Int64() >> random.IntN(63))
		}
		got := stats.Summed(list)
		slices.Sort(list)
		require.Equal(t, n, got.Count)
		require.Equal(t, n <= stats.Kept, got.Exact)
		for percent, d := range map[int]time.Duration{50: got.P50, 99: got.P99} {
			want := nearest(list, percent)
			if got.Exact {
				require.Equal(t, want, d, "%d of %d", percent, n)
				continue
			}
			require.GreaterOrEqual(t, d, want)
			require.LessOrEqual(t, d-want, want/64)
		}
	}
	require.Equal(t, stats.Latency{Count: 1, Exact: true}, stats.Summed([]time.Duration{-5}), "the clock went back")
	long := stats.Summed(slices.Repeat([]time.Duration{1<<63 - 1}, stats.Kept+1))
	require.Equal(t, time.Duration(1<<63-1), long.P99)
}
