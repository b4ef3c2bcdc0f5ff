package rego_test

import (
	"encoding/json"
	"fmt"
	mathbits "math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// element returns the element that the rule of a set adds in
// TestEveryComposition.
func element(set string) string {
	switch set {
	case "require":
		return "verify"
	case "redact":
		return "/args/deny"
	case "mask":
		return "file://*/x"
	default:
		return set
	}
}

// TestEveryComposition compares every combination of sets with the
// documentation. It tries calls that can be held, calls that cannot, and the
// purposes that differ.
func TestEveryComposition(t *testing.T) {
	var text strings.Builder
	text.WriteString("package remit\n")
	sets := slices.DeleteFunc(rego.SetNames(), func(set string) bool { return strings.HasSuffix(set, "_commit") }) // TestCommitHasItsOwnSets
	for _, set := range sets {
		fmt.Fprintf(&text, "\n%s contains %q if input.call.args.%s\n", set, element(set), set)
	}
	e := engine(t, text.String())
	seen := map[perm.Effect]int{}
	for bits := 0; bits < 1<<len(sets); bits += statcheck.Stride(1) | 1 { // odd, because an even stride never sets some sets
		on := map[string]bool{}
		for i, set := range sets {
			on[set] = bits&(1<<i) != 0
		}
		args, err := json.Marshal(on)
		require.NoError(t, err)
		for _, c := range asked(bits) {
			r := request()
			r.Call.Args, r.Call.EffectClass, r.Purpose = args, c.class, c.purpose
			d := decide(t, e, r)
			effect, reasons := documented(on, c.class, c.purpose)
			seen[effect]++
			if d.Effect() != effect || !slices.Equal(reasonSets(d.Reasons()), reasons) {
				require.Fail(t, "not as documented", "%v %+v: %s %v, want %s %v", on, c, d.Effect(), d.Reasons(), effect, reasons)
			}
			requireDetails(t, on, c.purpose, d.Details())
		}
	}
	t.Logf("%v of %d sets", seen, len(sets))
	require.Len(t, seen, 4)
}

type askingEngine struct {
	class   string
	purpose perm.Purpose
}

// asked returns the requests for a combination: a call of either kind and
// another purpose, in rotation. The long mode returns all of them.
func asked(bits int) []askingEngine {
	all := []askingEngine{{"reversible", perm.PurposeRun}, {"pivot", perm.PurposeRun}, {"pivot", perm.PurposeVerify}, {"pivot", perm.PurposeList}}
	switch {
	case statcheck.Whole():
		return append(all, askingEngine{"reversible", perm.PurposeVerify}, askingEngine{"reversible", perm.PurposeList})
	case mathbits.OnesCount(uint(bits))%2 == 0:
		return all[:3]
	default:
		return append(all[:2], all[3])
	}
}

// documented returns the documented effect and sets of a combination.
func documented(on map[string]bool, class string, purpose perm.Purpose) (perm.Effect, []string) {
	var refused []string
	badHold := on["hold"] && class != "deferrable" && class != "pivot"
	for _, c := range []struct {
		set string
		is  bool
	}{{"deny", on["deny"]}, {"limit", on["limit"]}, {"ensure", on["ensure"] && purpose == perm.PurposeVerify}, {"hold", badHold}} {
		if c.is {
			refused = append(refused, c.set)
		}
	}
	switch {
	case len(refused) > 0:
		return perm.Deny, refused
	case on["ask"] && on["hold"]:
		return perm.Ask, []string{"ask", "hold"}
	case on["ask"]:
		return perm.Ask, []string{"ask"}
	case on["hold"]:
		return perm.Hold, []string{"hold"}
	case on["allow"]:
		return perm.Allow, []string{"allow"}
	default:
		return perm.Deny, []string{"deny"} // no rule allows this
	}
}

func reasonSets(reasons []perm.Reason) (sets []string) {
	for _, r := range reasons {
		sets = append(sets, r.Set)
	}
	return sets
}

// requireDetails checks that the other sets add their elements under every
// effect.
func requireDetails(t *testing.T, on map[string]bool, purpose perm.Purpose, d perm.Details) {
	t.Helper()
	for set, got := range map[string]int{
		"hint": len(d.Hints), "label": len(d.Labels), "redact": len(d.Redact), "mask": len(d.Masks),
		"require": len(d.Requires), "ensure": len(d.FailedPostconditions), "hide": len(d.HideReasons),
	} {
		want := 0
		if on[set] && (set != "ensure" || purpose == perm.PurposeVerify) && (set != "hide" || purpose == perm.PurposeList) {
			want = 1
		}
		if got != want {
			require.Fail(t, "a set says something else", "%s of %v for %s: %d", set, on, purpose, got)
		}
	}
}

// TestElementsThatCannotBeCarriedOut checks that an element that cannot be
// applied denies the call: an unknown requirement, a dangling pointer, an empty
// mask.
func TestElementsThatCannotBeCarriedOut(t *testing.T) {
	for rule, why := range map[string]string{
		`require contains input.tool.name if true`:                                  `require "file_read" cannot be met: require knows verify, revert, sandbox, preview and nothing else`,
		`redact contains concat("", ["token", input.tool.version]) if true`:         `redact "token" cannot be met: an element of redact is a JSON pointer into /args or /output, such as /args/token`,
		`mask contains concat("", ["file:/", input.access.method]) if true`:         "",
		`mask contains concat("/", ["https:", "", input.tool.name]) if true`:        `mask "https://file_read" cannot be met: an element of mask is a pattern of files such as file://*/**/.git/**, or one, the word except, and patterns`,
		`mask contains concat("/", ["file:/", "ws", "a", input.tool.name]) if true`: "",
	} {
		d := decide(t, engine(t, control+rule), request())
		if why == "" {
			require.Equal(t, perm.Allow, d.Effect(), rule)
			continue
		}
		require.Equal(t, perm.Deny, d.Effect(), rule)
		require.Equal(t, why, d.Reasons()[0].Text)
	}
}
