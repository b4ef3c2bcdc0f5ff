package treecheck

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompareWithNothing(t *testing.T) {
	tree := Tree{Entries: []Entry{{Path: ".", Type: Directory}, {Path: "a", Type: Symlink}}}
	require.Empty(t, Compare(Tree{}, Tree{}))
	require.Equal(t, []Difference{
		{Path: ".", Field: Missing, Want: "directory", Got: "absent"}, {Path: "a", Field: Missing, Want: "symlink", Got: "absent"},
	}, Compare(tree, Tree{}))
	require.Equal(t, []Difference{
		{Path: ".", Field: Extra, Want: "absent", Got: "directory"}, {Path: "a", Field: Extra, Want: "absent", Got: "symlink"},
	}, Compare(Tree{}, tree))
	require.Equal(t, []Difference{{Path: ".", Field: Missing, Want: "directory", Got: "absent"}}, Compare(tree, Tree{Entries: tree.Entries[1:]}))
	require.Equal(t, []Difference{{Path: ".", Field: Extra, Want: "absent", Got: "directory"}}, Compare(Tree{Entries: tree.Entries[1:]}, tree))
}

func TestComparePaths(t *testing.T) {
	sorted := []string{".", "\n", "-", "a", "a/\n", "a/b", "a/b/c", "a/b-", "a/ba", "a\n", "a-", "aa", "b", "\xff"}
	for i, a := range sorted {
		for j, b := range sorted {
			got := comparePaths(a, b)
			require.Equal(t, i < j, got < 0, "%q %q", a, b)
			require.Equal(t, i > j, got > 0, "%q %q", a, b)
		}
	}
	require.True(t, slices.IsSortedFunc(sorted, comparePaths))
}

// TestCompareAllocation: the extents are equal, and only one file has its blocks.
func TestCompareAllocation(t *testing.T) {
	tree := func(allocated int64) Tree {
		return Tree{Entries: []Entry{{Path: "a", Type: Regular, Size: 1 << 20, Data: 4096, Allocated: allocated}}}
	}
	for _, tt := range []struct {
		want, got int64
		found     int
	}{
		{4096, 1 << 20, 1}, {1 << 20, 4096, 1}, {4096, 8192, 0}, {1 << 20, 1<<20 + 4096, 0}, {1<<20 - 4096, 1 << 20, 0}, {1<<20 - 4096, 4096, 0},
	} {
		require.Len(t, Compare(tree(tt.want), tree(tt.got)), tt.found, "%d %d", tt.want, tt.got)
	}
}

func TestACLText(t *testing.T) {
	for value, want := range map[string]string{
		"":                     `""`,
		"\x01\x00\x00\x00":     `"\x01\x00\x00\x00"`,
		"\x02\x00\x00\x00":     "",
		"\x02\x00\x00\x00\x01": `"\x02\x00\x00\x00\x01"`,
		"\x02\x00\x00\x00\x08\x00\x05\x00\x07\x00\x00\x00": "group:7:r-x",
		"\x02\x00\x00\x00\x40\x00\x0f\x00\x07\x00\x00\x00": "tag 0x40:7:0xf",
	} {
		require.Equal(t, want, aclText(value))
	}
}

// TestCompareCounts: an inode gets one more name outside of the tree, and a file
// loses one of its holes.
func TestCompareCounts(t *testing.T) {
	tree := func(names uint64, data int64) Tree {
		links := &LinkGroup{Count: names, Paths: []string{"a"}}
		return Tree{Entries: []Entry{{Path: "a", Type: Regular, Size: 1 << 20, Data: data, Allocated: 8192, Links: links}}}
	}
	require.Empty(t, Compare(tree(2, 4096), tree(2, 4096)))
	require.Equal(t, Links, Compare(tree(2, 4096), tree(3, 4096))[0].Field)
	require.Equal(t, Sparse, Compare(tree(2, 4096), tree(2, 8192))[0].Field)
}
