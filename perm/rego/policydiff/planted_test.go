package policydiff_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/perm/rego/policydiff"
)

// engine loads a policy. An error means that the loader refuses it, such as a
// comparison that can never hold.
func engine(text string, tables map[string][]string) (*rego.Engine, error) {
	data := map[string]any{}
	for name, rows := range tables {
		list := make([]any, len(rows))
		for i, row := range rows {
			list[i] = row
		}
		data[name] = list
	}
	return rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Data: map[string]any{"tables": data}, Timeout: time.Minute, CacheSize: -1})
}

// verdict is what the runtime would do after a decision, by the documentation.
func verdict(t *testing.T, e *rego.Engine, r perm.Request) string {
	d, err := e.Decide(context.Background(), r)
	if err != nil {
		return "deny"
	}
	all := d.Details()
	labels := slices.Compact(slices.Sorted(slices.Values(all.Labels)))
	if d.Effect() == perm.Deny {
		return fmt.Sprint("deny", labels)
	}
	var limits, needs []string
	for _, l := range all.Limits {
		limits = append(limits, l.Budget+string(l.Max))
	}
	for _, n := range all.Requires {
		needs = append(needs, n.Text)
	}
	slices.Sort(limits)
	slices.Sort(needs)
	return fmt.Sprint(d.Effect(), d.Has("hold"), len(all.HideReasons) > 0, all.Masks, labels, slices.Compact(limits), slices.Compact(needs))
}

// meaningChanged searches a call that two policies decide differently, in the
// terms of this test, near the changed rule.
func (w *sampler) meaningChanged(t *testing.T, p, q *policy, old, changed *rego.Engine, at, tries int) bool {
	for range tries {
		k := w.call()
		of := p
		if w.IntN(2) == 0 {
			of = q
		}
		if permits := w.IntN(len(of.rules)); w.IntN(3) > 0 {
			for _, c := range of.rules[permits].all {
				w.meet(c, of, k)
			}
		}
		if at < len(of.rules) {
			for range 2 {
				for _, c := range of.rules[at].all {
					if w.IntN(14) > 0 {
						w.meet(c, of, k)
					}
				}
			}
		}
		if r := k.request(); verdict(t, old, r) != verdict(t, changed, r) {
			return true
		}
	}
	return false
}

// checked checks each counterexample with fresh engines, after a round trip
// through JSON.
func checked(t *testing.T, r *policydiff.Report, load func() (old, changed *rego.Engine)) {
	old, changed := load()
	for _, d := range r.Differences {
		text, err := json.Marshal(d.Input)
		require.NoError(t, err)
		var again perm.Request
		require.NoError(t, json.Unmarshal(text, &again))
		before, err := old.Decide(context.Background(), again)
		require.NoError(t, err)
		after, err := changed.Decide(context.Background(), again)
		require.NoError(t, err)
		require.Equal(t, d.Before.Effect, before.Effect().String())
		require.Equal(t, d.After.Effect, after.Effect().String())
		require.Equal(t, fmt.Sprint(d.Before.Reasons), fmt.Sprint(before.Reasons()))
		require.Equal(t, fmt.Sprint(d.After.Reasons), fmt.Sprint(after.Reasons()))
		require.NotEqual(t, verdict(t, old, again), verdict(t, changed, again), "%s", text)
	}
}

// TestPlanted compares random pairs of policies: half of them with one planted
// change, a quarter of the same meaning in other words, and a quarter unrelated.
func TestPlanted(t *testing.T) {
	pairs := statcheck.Size(16, 10_000)
	tries, probes := 2000, 600
	if statcheck.Whole() {
		tries, probes = 4000, 2000
	}
	kinds, missed := map[string]int{}, map[string]int{}
	var planted, changed, found, onlyWe, differences, unrelated int
	for seed := range pairs {
		w := &sampler{rand.New(rand.NewPCG(uint64(seed), 77)), words()}
		p, oldText := w.loadable()
		q, at, what, newText := p, 0, "", ""
		switch seed % 4 {
		case 0, 1:
			planted++
			for {
				q, at, what = w.plant(p)
				if newText = q.source(""); len(q.rules) > 0 {
					if _, err := engine(newText, q.data); err == nil {
						break
					}
				}
			}
		case 2:
			q = p.copy()
			slices.Reverse(q.rules)
			newText = q.source("_again")
		default:
			unrelated++
			q, newText = w.loadable()
		}
		load := func() (*rego.Engine, *rego.Engine) {
			a, err := engine(oldText, p.data)
			require.NoError(t, err)
			b, err := engine(newText, q.data)
			require.NoError(t, err)
			return a, b
		}
		a, b := load()
		r, err := policydiff.Run(context.Background(), policydiff.Options{Old: a, New: b, Tries: tries, Seed: uint64(seed)})
		require.NoError(t, err)
		differences += len(r.Differences)
		checked(t, r, load)
		switch seed % 4 {
		case 0, 1:
			finds := len(r.Differences) > 0
			known := w.meaningChanged(t, p, q, a, b, at, probes)
			if !finds && !known {
				continue // the change means nothing, as far as two searches can tell
			}
			changed++
			kinds[what]++
			switch {
			case finds && !known:
				onlyWe++
				found++
			case finds:
				found++
			default:
				missed[what]++
				if len(missed) < 3 {
					t.Logf("missed, seed %d, %s in rule %d\n%s\n%s", seed, what, at, oldText, newText)
				}
			}
		case 2:
			require.Empty(t, r.Differences, "seed %d\n%s\n%s", seed, oldText, newText)
		}
	}
	rate := float64(found) / float64(max(changed, 1))
	t.Logf("%d pairs, %d unrelated, %d counterexamples; %d planted, %d change the meaning, %d found (%.2f %%), %d of them only by policydiff", pairs, unrelated, differences, planted, changed, found, 100*rate, onlyWe)
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%-24s %d missed %d", k, kinds[k], missed[k])
	}
	require.GreaterOrEqual(t, rate, 0.95)
}

// loadable returns a random policy that loads, with its text.
func (w *sampler) loadable() (*policy, string) {
	for {
		p := w.policy()
		text := p.source("")
		if _, err := engine(text, p.data); err == nil {
			return p, text
		}
	}
}
