// Package suggest finds the name that was probably meant by one that does not
// exist.
package suggest

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// longest is a length in bytes at which nobody misspells, and comparing takes
// the product of two lengths.
const longest = 100

// Name returns the candidate that was probably meant, "" where none is near. A
// third of the letters may be wrong, and at least two; case does not count.
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
