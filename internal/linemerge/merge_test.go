package linemerge_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/linemerge"
	"github.com/remit-dev/remit/internal/proof/mergecheck"
	"github.com/remit-dev/remit/internal/proof/randtext"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

func Example() {
	merged, overlaps, err := linemerge.Merge([]byte("a\nB\nc\n"), []byte("a\nB\nc\nmine\n"), []byte("a\nb\nc\n"))
	fmt.Printf("%q %v %v\n", merged, overlaps, err)
	// Output: "a\nb\nc\nmine\n" [] <nil>
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct{ name, base, ours, theirs, want string }{
		{"nothing", "", "", "", ""},
		{"ours", "a\nb\n", "a\nB\n", "a\nb\n", "a\nB\n"},
		{"theirs", "a\nb\n", "a\nb\n", "a\nB\n", "a\nB\n"},
		{"apart", "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"},
		{"the same", "a\nb\nc\n", "A\nb\nc\n", "A\nb\nC\n", "A\nb\nC\n"},
		{"both remove", "a\nb\nc\nd\ne\n", "a\nc\nd\ne\n", "a\nc\nd\n", "a\nc\nd\n"},
		{"an end of the last line", "a\nb\nc", "a\nb\nc\n", "A\nb\nc", "A\nb\nc\n"},
		{"no end of the last line", "a\nb\nc\n", "a\nb\nc", "A\nb\nc\n", "A\nb\nc"},
		{"other line ends", "a\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nc\r\n", "A\r\nb\r\nC\r\n"},
		{"no line ends of unix", "a\rb", "a\rb", "c\rd", "c\rd"},
		{"no UTF-8", "\xff\nb\nc\n", "\xfe\nb\nc\n", "\xff\nb\nC\n", "\xfe\nb\nC\n"},
		{"all removed", "a\nb\nc\n", "", "a\nb\nc\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, overlaps, err := linemerge.Merge([]byte(tt.base), []byte(tt.ours), []byte(tt.theirs))
			require.NoError(t, err)
			require.Empty(t, overlaps)
			require.Equal(t, tt.want, string(got))
		})
	}
}

func TestOverlaps(t *testing.T) {
	for _, tt := range []struct {
		name, base, ours, theirs string
		want                     []linemerge.Overlap
	}{
		{"the same line", "a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n", []linemerge.Overlap{{Line: 2, Lines: 1, Ours: []byte("X\n"), Theirs: []byte("Y\n")}}},
		{"the next line", "a\nb\nc\n", "a\nX\nc\n", "a\nb\nY\n", []linemerge.Overlap{{Line: 2, Lines: 2, Ours: []byte("X\nc\n"), Theirs: []byte("b\nY\n")}}},
		{"removed and changed", "a\nb\nc\n", "a\nc\n", "a\nY\nc\n", []linemerge.Overlap{{Line: 2, Lines: 0, Ours: []byte{}, Theirs: []byte("Y\n")}}},
		{"all line ends", "a\nb\nc\n", "a\r\nb\r\nc\r\n", "A\nb\nc\n", []linemerge.Overlap{{Line: 1, Lines: 3, Ours: []byte("a\r\nb\r\nc\r\n"), Theirs: []byte("A\nb\nc\n")}}},
		{"two", "a\nb\nc\nd\ne\n", "X\nx\nb\nc\nd\nX\n", "Y\nb\nC\nd\nY\n", []linemerge.Overlap{
			{Line: 1, Lines: 2, Ours: []byte("X\nx\n"), Theirs: []byte("Y\n")},
			{Line: 6, Lines: 1, Ours: []byte("X\n"), Theirs: []byte("Y\n")},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, overlaps, err := linemerge.Merge([]byte(tt.base), []byte(tt.ours), []byte(tt.theirs))
			require.NoError(t, err)
			require.Nil(t, got)
			require.Equal(t, tt.want, overlaps)
		})
	}
}

// TestTooDifferent checks that a comparison ends.
func TestTooDifferent(t *testing.T) {
	var a, b strings.Builder
	for i := range 60_000 { // the same lines in another order: none of them is only on one side
		fmt.Fprintf(&a, "%d\n", i)
		fmt.Fprintf(&b, "%d\n", i*7919%60_000)
	}
	_, _, err := linemerge.Merge([]byte(a.String()), []byte(b.String()), []byte(a.String()))
	require.ErrorIs(t, err, linemerge.ErrTooDifferent)
	_, _, err = linemerge.Merge([]byte(a.String()), []byte(a.String()), []byte(b.String()))
	require.ErrorIs(t, err, linemerge.ErrTooDifferent)
}

func TestText(t *testing.T) {
	require.True(t, linemerge.Text([]byte("a\xff\r\n")))
	require.False(t, linemerge.Text([]byte("a\x00b")))
}

// TestGit compares random merges with those of git.
func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir, err := os.MkdirTemp("/dev/shm", "merge-")
	if err != nil {
		dir = t.TempDir()
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var both, stricter, looser, conflicts int
	runs := statcheck.Size(1_000, 10_000)
	for seed := range runs {
		e := randtext.New(uint64(seed))
		merged, overlaps, err := linemerge.Merge([]byte(e.Left), []byte(e.Now), []byte(e.Before))
		require.NoError(t, err)
		m := mergecheck.Merge{Before: e.Before, Left: e.Left, Now: e.Now, Clean: len(overlaps) == 0, Result: string(merged)}
		if !m.Clean {
			m.Result = m.Now
			conflicts++
		}
		v, err := mergecheck.Check(dir, m)
		require.NoError(t, err, "seed %d: %q", seed, m)
		if v.Both {
			both++
		}
		if v.Stricter {
			stricter++
		}
		if v.Looser {
			looser++
		}
	}
	t.Logf("%d runs: %d merged, as by git; %d conflicts, %d of them only here; %d conflicts only there", runs, both, conflicts, stricter, looser)
	require.Greater(t, both, runs/4)
	require.Greater(t, conflicts, runs/20)
	require.LessOrEqual(t, stricter, runs/50)
	require.LessOrEqual(t, looser, runs/500)
}
