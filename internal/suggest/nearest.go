// Package suggest finds the existing name that a misspelled one probably means.
package suggest

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// longest is the maximum length in bytes of a compared name: comparing takes
// time in the product of two lengths.
const longest = 100

// Name returns the most similar candidate, or "" if none is similar. A third of
// the letters may be wrong, and at least two; case does not count.
func Name(name string, candidates []string) string {
	best, fewest := "", max(2, len(name)/3)+1
	if len(name) > longest {
		return ""
	}
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(c)); d < fewest {
			best, fewest = c, d
		}
	}
	return best
}
