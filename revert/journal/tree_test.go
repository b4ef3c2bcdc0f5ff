package journal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
)

func TestHeadsAreReadAsTheyAreWritten(t *testing.T) {
	tree := journal.Tree{}
	for _, leaf := range []string{"", "a", "b", "c"} {
		h := tree.Head()
		again, err := journal.ParseHead(h.String())
		require.NoError(t, err)
		require.Equal(t, h, again)
		tree, _ = tree.Add(leaf)
	}
	require.Equal(t, int64(4), tree.Size())
}

func TestParseHeadRefuses(t *testing.T) {
	root := "sha256:" + strings.Repeat("0a", 32)
	for _, text := range []string{"", "1", root, "1:", "-1:" + root, "9223372036854775807:" + root, "x:" + root, "1:" + root + "00", "1:" + root[:70] + "g", "1:sha1:" + root[7:], "99999999999999999999:" + root} {
		_, err := journal.ParseHead(text)
		require.ErrorContains(t, err, "SIZE:sha256:DIGITS", text)
	}
}

// TestInvalidHeads checks that invalid heads neither prove nor get proven.
func TestInvalidHeads(t *testing.T) {
	good := journal.Tree{}.Head()
	for _, bad := range []journal.Head{{}, {Size: -1, Root: good.Root}, {Size: 1, Root: "sha256:x"}, {Size: 1 << 61, Root: good.Root}} {
		for _, pair := range [][2]journal.Head{{bad, good}, {good, bad}} {
			_, err := journal.Proof(t.Context(), journal.Memory(), pair[0], pair[1])
			require.ErrorContains(t, err, "of a tree")
			require.ErrorContains(t, journal.CheckPrefix(pair[0], pair[1], nil), "of a tree")
		}
	}
}

// The vectors of RFC 6962 that Certificate Transparency logs publish do not
// fit, because records here are texts of digests. So the test pins these
// instead.
func TestTreeVectors(t *testing.T) {
	tree, heads := journal.Tree{}, []string{}
	for _, leaf := range []string{"sha256:a", "sha256:b", "sha256:c"} {
		heads = append(heads, tree.Head().String())
		tree, _ = tree.Add(leaf)
	}
	require.Equal(t, []string{
		"0:sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"1:sha256:f9351c9b26ebb2842b543415f6232ebd0799614f8a95aa12ac68bc3b71dfa3dd",
		"2:sha256:55d1a352c0bc84ea4db8b11a92b3995e94355ac399f78b71c58af4dda18f8990",
	}, heads)
	require.Equal(t, "3:sha256:d79fc58881746168c848eccf9e97a8afcfd49f0461ce1281a82733d6bbaf33b4", tree.Head().String())
}
