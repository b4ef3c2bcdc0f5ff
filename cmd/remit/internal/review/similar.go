package review

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// shared is the part of their words that descriptions which sound the same have in common.
const shared = 0.8

// similarTools looks whether a tool could be taken for one that stands before it. Versions of one
// tool are one.
func (r *reviewer) similarTools(t, other tool.Tool) {
	a, b := t.Name(), other.Name()
	if a == b {
		return
	}
	if likeNames(a, b) {
		r.warn("/name", "alike", "name what tells them apart", "the name could be taken for %s", b)
	}
	x, y := words(t.Spec().Description), words(other.Spec().Description)
	if len(x) > 0 && len(y) > 0 && overlap(x, y) >= shared {
		r.warn("/description", "alike", "say when to use the one, and when the other", "the description says nearly the same as that of %s", b)
	}
}

// likeNames reports whether two names have the same words in any order, the same letters,
// or differ by one letter in five or more.
func likeNames(a, b string) bool {
	x, y := strings.Split(a, "_"), strings.Split(b, "_")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y) || strings.ReplaceAll(a, "_", "") == strings.ReplaceAll(b, "_", "") ||
		min(len(a), len(b)) >= 5 && levenshtein.ComputeDistance(a, b) == 1 && digits(a) == digits(b)
}

// digits are the digits of a name: those of step_1 and step_2 tell them apart.
func digits(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}

// words are the different words of a text.
func words(text string) (out []string) {
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(all)
	return slices.Compact(all)
}

// overlap is how many of the words of both two texts have in common.
func overlap(a, b []string) float64 {
	both := 0
	for _, w := range a {
		if slices.Contains(b, w) {
			both++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

func contains(all []string, one string) bool { return slices.Contains(all, one) }

func number(i int) string { return strconv.Itoa(i) }

// canonicalText is a text as JSON has it.
func canonicalText(text string) []byte {
	raw, err := canon.Marshal(text)
	if err != nil {
		return []byte(`""`) // a name of a document that was parsed is a text
	}
	return raw
}
