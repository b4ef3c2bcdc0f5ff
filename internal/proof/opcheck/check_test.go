package opcheck_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/opcheck"
)

type events = []opcheck.Event

func left(txn, call, resource, content string) opcheck.Event {
	return opcheck.Event{Kind: opcheck.Left, Txn: txn, Call: call, Resource: resource, Content: content}
}

func seen(resource, content string) opcheck.Event {
	return opcheck.Event{Kind: opcheck.Seen, Resource: resource, Content: content}
}

func ended(txn string, as opcheck.State) opcheck.Event {
	return opcheck.Event{Kind: opcheck.Ended, Txn: txn, State: as}
}

func effectReverted(txn, call, resource string) opcheck.Event {
	return opcheck.Event{Kind: opcheck.EffectReverted, Txn: txn, Call: call, Resource: resource}
}

func redoStarted(txn string) opcheck.Event { return opcheck.Event{Kind: opcheck.RedoStarted, Txn: txn} }

func outsideLeft(resource, content string) opcheck.Event {
	return opcheck.Event{Kind: opcheck.Theirs, Resource: resource, Content: content}
}

func done(txn, call string) opcheck.Event {
	return opcheck.Event{Kind: opcheck.Done, Txn: txn, Call: call}
}

func touched(txn, resource string) opcheck.Event {
	return opcheck.Event{Kind: opcheck.Touched, Txn: txn, Resource: resource}
}

func announced(txn, call, key string) opcheck.Event {
	return opcheck.Event{Kind: opcheck.Announced, Txn: txn, Call: call, Key: key}
}

func acted(key string) opcheck.Event { return opcheck.Event{Kind: opcheck.Acted, Key: key} }

func withdrawn(key string) opcheck.Event { return opcheck.Event{Kind: opcheck.Withdrawn, Key: key} }

func took(txn, owner string) opcheck.Event {
	return opcheck.Event{Kind: opcheck.Took, Txn: txn, Owner: owner}
}

func wrote(txn, owner string) opcheck.Event {
	return opcheck.Event{Kind: opcheck.Wrote, Txn: txn, Owner: owner}
}

// TestCheck plants a violation of each kind, and beside each a similar history
// without one.
func TestCheck(t *testing.T) {
	gaveUp := opcheck.Event{Kind: opcheck.Dropped, Content: "F"}
	kept := opcheck.Event{Kind: opcheck.Kept, Content: "F"}
	for _, tt := range []struct {
		name    string
		events  events
		promise string // empty: no violation
	}{
		{"nothing", nil, ""},
		{"their bytes are nowhere", events{outsideLeft("a", "F")}, opcheck.ForeignBytes},
		{"their bytes are kept", events{outsideLeft("a", "F"), kept}, ""},
		{"they gave it up", events{outsideLeft("a", "F"), gaveUp}, ""},
		{"they left nothing", events{outsideLeft("a", "")}, ""},

		{"an effect", events{announced("t", "c", "k"), acted("k")}, ""},
		{"twice", events{announced("t", "c", "k"), acted("k"), acted("k")}, opcheck.Once},
		{"before its record", events{acted("k"), announced("t", "c", "k")}, opcheck.Announcing},
		{"reverted", events{announced("t", "c", "k"), acted("k"), withdrawn("k")}, ""},
		{"reverted twice", events{announced("t", "c", "k"), acted("k"), withdrawn("k"), withdrawn("k")}, opcheck.Once},

		{"a line", events{touched("1", "a"), touched("2", "a"), touched("2", "b"), touched("3", "b"), ended("1", 1), ended("2", 1), ended("3", 1)}, ""},
		{"a circle of two", events{touched("1", "a"), touched("2", "a"), touched("2", "b"), touched("1", "b"), ended("1", 1), ended("2", 2)}, opcheck.Acyclic},
		{"a circle of three", events{
			touched("1", "a"), touched("2", "a"), touched("2", "b"), touched("3", "b"), touched("3", "c"), touched("1", "c"),
			ended("1", 1), ended("2", 3), ended("3", 1),
		}, opcheck.Acyclic},
		{"one of the circle has not ended", events{touched("1", "a"), touched("2", "a"), touched("2", "b"), touched("1", "b"), ended("1", 1)}, ""},
		{"a square", events{
			touched("1", "a"), touched("1", "b"), touched("2", "a"), touched("3", "b"), touched("4", "a"), touched("4", "b"),
			ended("1", 1), ended("2", 1), ended("3", 1), ended("4", 1),
		}, ""},

		{"undone, and there", events{left("t", "c", "a", "C"), effectReverted("t", "c", "a"), seen("a", "C")}, opcheck.ClaimReverted},
		{"undone, and there before", events{left("t", "c", "a", "C"), seen("a", "C"), effectReverted("t", "c", "a"), seen("a", "B")}, ""},
		{"undone elsewhere", events{left("t", "c", "a", "C"), left("t", "c", "b", "D"), effectReverted("t", "c", "a"), seen("b", "D")}, ""},
		{"undone, and redone", events{left("t", "c", "a", "C"), effectReverted("t", "c", "a"), redoStarted("t"), seen("a", "C")}, ""},
		{"reverted, and there", events{left("t", "c", "a", "C"), ended("t", opcheck.Reverted), seen("a", "C")}, opcheck.ClaimReverted},
		{"reverted in part, and there", events{left("t", "c", "a", "C"), ended("t", opcheck.Partial), seen("a", "C")}, ""},
		{"undone in a service, and there", events{announced("t", "c", "k"), acted("k"), effectReverted("t", "c", "")}, opcheck.ClaimReverted},
		{"undone in a service, and late", events{announced("t", "c", "k"), effectReverted("t", "c", ""), acted("k")}, opcheck.ClaimReverted},
		{"undone in a service", events{announced("t", "c", "k"), acted("k"), withdrawn("k"), effectReverted("t", "c", "")}, ""},

		{"done, and there", events{left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), seen("a", "C")}, ""},
		{"done, and gone", events{left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), seen("a", "B")}, opcheck.ClaimDone},
		{"done, and somebody came after", events{
			left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), outsideLeft("a", "F"), kept, seen("a", "F"),
		}, ""},
		{"done, and undone since", events{left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), effectReverted("t", "c", "a"), seen("a", "B")}, ""},
		{"done, and being undone", events{
			left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), {Kind: opcheck.Taking, Txn: "t"}, seen("a", "B"),
		}, ""},
		{"done, and another one is being undone", events{
			left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), {Kind: opcheck.Taking, Txn: "u"}, seen("a", "B"),
		}, opcheck.ClaimDone},
		{"done, and somebody came before it was said", events{
			touched("t", "a"), outsideLeft("a", "F"), kept, left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), seen("a", "F"),
		}, ""},
		{"done over what somebody left, and gone", events{
			outsideLeft("a", "F"), kept, touched("t", "a"), left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), seen("a", "F"),
		}, opcheck.ClaimDone},
		{"done, and somebody came after, who knows how far", events{
			left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), touched("u", "a"), {Kind: opcheck.EffectUnknown, Txn: "u"}, seen("a", "B"),
		}, ""},
		{"done, and somebody got nowhere before, who knows how far", events{
			touched("u", "a"), left("t", "c", "a", "C"), done("t", "c"), ended("t", opcheck.Committed), {Kind: opcheck.EffectUnknown, Txn: "u"}, seen("a", "B"),
		}, opcheck.ClaimDone},
		{"not committed", events{left("t", "c", "a", "C"), done("t", "c"), seen("a", "B")}, ""},
		{"not said to be done", events{left("t", "c", "a", "C"), ended("t", opcheck.Committed), seen("a", "B")}, ""},

		{"the owner writes", events{took("t", "p"), wrote("t", "p"), took("t", "q"), wrote("t", "q")}, ""},
		{"one who was the owner writes", events{took("t", "p"), took("t", "q"), wrote("t", "p")}, opcheck.Owners},
		{"nobody's", events{wrote("t", "p")}, opcheck.Owners},

		{"a prefix recovers", events{{Kind: opcheck.Recovered, N: 3}}, ""},
		{"a prefix does not", events{{Kind: opcheck.Recovered, N: 3, Text: "no such call"}}, opcheck.Prefixes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := opcheck.Check(tt.events)
			if tt.promise == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, tt.promise, found[0].Promise)
			require.NotEmpty(t, found[0].Text)
		})
	}
}

// TestCyclesAreFound compares the search for cycles with another method: a
// graph has none exactly if transactions without dependencies can be removed
// repeatedly until none is left.
func TestCyclesAreFound(t *testing.T) {
	circles := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all events
		txns := []string{"1", "2", "3", "4", "5"}
		for range 2 + r.IntN(10) {
			all = append(all, touched(txns[r.IntN(5)], string(rune('a'+r.IntN(4)))))
		}
		for _, txn := range txns {
			all = append(all, ended(txn, opcheck.Committed))
		}
		has := len(opcheck.Check(all)) > 0
		if has {
			circles++
		}
		require.Equal(t, !ordered(all, txns), has, "seed %d: %v", seed, all)
	}
	require.Greater(t, circles, 100)
	require.Less(t, circles, 1900)
}

func ordered(all events, txns []string) bool {
	on := map[[2]string]bool{}
	for i, e := range all {
		for _, before := range slices.Backward(all[:i]) {
			if before.Kind == opcheck.Touched && e.Kind == opcheck.Touched && before.Resource == e.Resource {
				if before.Txn != e.Txn {
					on[[2]string{e.Txn, before.Txn}] = true
				}
				break
			}
		}
	}
	left := slices.Clone(txns)
	for len(left) > 0 {
		free := slices.IndexFunc(left, func(txn string) bool {
			return !slices.ContainsFunc(left, func(other string) bool { return on[[2]string{txn, other}] })
		})
		if free < 0 {
			return false
		}
		left = slices.Delete(left, free, free+1)
	}
	return true
}

func TestKindsHaveNames(t *testing.T) {
	for k := opcheck.Announced; k <= opcheck.Recovered; k++ {
		require.NotEmpty(t, k.String())
		require.NotEqual(t, "?", k.String())
	}
	require.Equal(t, "?", opcheck.Kind(200).String())
}
