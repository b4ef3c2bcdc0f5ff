package perm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
)

// texts returns every text of up to most symbols, joined by sep.
func texts(symbols []string, most int, sep string) []string {
	all, last := []string{""}, []string{""}
	for range most {
		var next []string
		for _, head := range last {
			for _, s := range symbols {
				if head != "" {
					s = head + sep + s
				}
				next = append(next, s)
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// agree compares Covers and Overlaps of every two patterns with the resources
// that they match according to the reference. No pattern contains c. So a star
// that matches anything differs from one that does not.
func agree(t *testing.T, patterns, resources []string) {
	t.Helper()
	parsed := make([]perm.Pattern, len(patterns))
	matched := make([][]bool, len(patterns))
	for i, text := range patterns {
		parsed[i] = pattern(t, text)
		matched[i] = make([]bool, len(resources))
		for j, r := range resources {
			matched[i][j] = refMatches(text, r)
		}
	}
	covers, overlaps := 0, 0
	for i, p := range parsed {
		for j, q := range parsed {
			all, some := true, false
			for k, m := range matched[j] {
				all = all && (!m || matched[i][k])
				some = some || m && matched[i][k]
			}
			if p.Covers(q) != all || p.Overlaps(q) != some {
				require.Fail(t, "differs from the reference", "%s and %s: covers %v, overlaps %v", p, q, all, some)
			}
			if all {
				covers++
			}
			if some {
				overlaps++
			}
		}
	}
	t.Logf("%d pairs, %d cover, %d overlap", len(patterns)*len(patterns), covers, overlaps)
	require.Greater(t, covers, 2*len(patterns))
	require.Greater(t, overlaps, covers)
}

func TestCoversPathsByEnumeration(t *testing.T) {
	longest := 4
	if statcheck.Whole() {
		longest = 5
	}
	var patterns, resources []string
	for _, p := range texts([]string{"a", "b", "*", "**", "a*", "*b"}, 3, "/") {
		patterns = append(patterns, strings.TrimSuffix("file://w/"+p, "/"))
	}
	for _, r := range texts([]string{"a", "b", "c", "ab", "ac", "cb"}, longest, "/") {
		resources = append(resources, strings.TrimSuffix("file://w/"+r, "/"))
	}
	agree(t, patterns, resources)
}

// TestCoversDeepByEnumeration checks ** against ** closely, with few words and
// long paths.
func TestCoversDeepByEnumeration(t *testing.T) {
	longest := 4
	if statcheck.Whole() {
		longest = 5
	}
	var patterns, resources []string
	for _, p := range texts([]string{"a", "*", "**"}, longest, "/") {
		patterns = append(patterns, strings.TrimSuffix("file://w/"+p, "/"))
	}
	for _, r := range texts([]string{"a", "c"}, 9, "/") {
		resources = append(resources, strings.TrimSuffix("file://w/"+r, "/"))
	}
	agree(t, patterns, resources)
}

func TestCoversSegmentsByEnumeration(t *testing.T) {
	var patterns, resources []string
	for _, p := range texts([]string{"a", "b", "*"}, 4, "") {
		if p != "" && !strings.Contains(p, "**") {
			patterns = append(patterns, "file://w/"+p)
		}
	}
	for _, r := range texts([]string{"a", "b", "c"}, 7, "") {
		if r != "" {
			resources = append(resources, "file://w/"+r)
		}
	}
	agree(t, patterns, resources)
}
