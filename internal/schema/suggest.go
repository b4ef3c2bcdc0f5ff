package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// unknownText describes a name that is not declared by those that are.
func unknownText(name string, known []string) string {
	if len(known) == 0 {
		return "is not known, there are none here"
	}
	const shown = 20
	var quoted []string
	for _, k := range known[:min(len(known), shown)] {
		quoted = append(quoted, strconv.Quote(cut(k)))
	}
	list := strings.Join(quoted, ", ")
	if len(known) > shown {
		list += fmt.Sprintf(" and %d others", len(known)-shown)
	}
	if near := closest(name, known); near != "" {
		return "is not known, did you mean " + strconv.Quote(cut(near)) + "? known: " + list
	}
	return "is not known, known: " + list
}

// closest returns the name that was probably meant, or "". A third of the letters may be wrong, and at least one.
func closest(name string, known []string) string {
	best, fewest := "", max(1, len(name)/3)+1
	if len(name) > 100 { // nobody misspells at this length, and the comparison takes the product of both
		return ""
	}
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// distance counts the single letters to insert, delete, change or swap with their neighbour to make b of a.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
