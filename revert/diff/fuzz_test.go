package diff_test

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/diff"
)

func resourceVersionOf(data []byte) diff.ResourceVersion {
	return diff.ResourceVersion{Type: "file", Mode: "0644", Digest: "d" + strconv.Itoa(len(data)) + string(data)}.From(
		func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
}

// FuzzPatch checks that the patch of two texts turns the first into the second,
// and in reverse. A slow reference applies it, which relies on every line
// number.
func FuzzPatch(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nB\nc\n"))
	f.Add([]byte("a\nb"), []byte("a\nb\n"))
	f.Add([]byte(""), []byte("x"))
	f.Add([]byte("x\n"), []byte(""))
	f.Add([]byte("--- a\n+++ b\n@@ -1 +1 @@\n"), []byte("--- a\n+++ c\n@@ -1 +1 @@\n"))
	f.Add([]byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n"), []byte("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n"))
	f.Add([]byte("\r\n\\ No newline at end of file\n"), []byte("\\ No newline at end of file"))
	f.Fuzz(func(t *testing.T, was, is []byte) {
		d := diff.Delta{Resource: "file://ws/a", Before: resourceVersionOf(was), After: resourceVersionOf(is)}
		text, err := d.Text(t.Context(), "a")
		require.NoError(t, err)
		if text.Binary {
			require.False(t, plain(was) && plain(is))
			require.NotContains(t, text.Patch, "\n@@ ", "half a patch")
			return
		}
		require.Equal(t, string(is), applied(t, string(was), text.Patch, '-', '+'))
		require.Equal(t, string(was), applied(t, string(is), text.Patch, '+', '-'))
		if bytes.Equal(was, is) {
			require.Zero(t, text.Added+text.Removed)
		}
		require.Equal(t, lines(string(is))-lines(string(was)), text.Added-text.Removed)
	})
}

func plain(data []byte) bool {
	return strings.ToValidUTF8(string(data), "") == string(data) && !bytes.Contains(data, []byte{0})
}

func lines(text string) int { return strings.Count(text, "\n") + len(rest(text)) }

func rest(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return ""
	}
	return "x"
}

var hunk = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n$`)

// applied applies the hunks of a patch: it removes lines that begin with less,
// and adds lines that begin with more.
func applied(t *testing.T, text, patch string, less, more byte) string {
	t.Helper()
	from := strings.SplitAfter(text, "\n")
	if from[len(from)-1] == "" {
		from = from[:len(from)-1]
	}
	var out strings.Builder
	at, inside, last := 0, false, byte(0)
	var pending string // a line whose end is unknown until the next line
	flush := func() { out.WriteString(pending); pending = "" }
	for line := range strings.SplitAfterSeq(patch, "\n") {
		if m := hunk.FindStringSubmatch(line); m != nil && (!inside || line[0] == '@') {
			flush()
			side := 1
			if less == '+' {
				side = 3
			}
			start, err := strconv.Atoi(m[side])
			require.NoError(t, err)
			if m[side+1] != "0" { // an empty range names the line before it
				start--
			}
			require.GreaterOrEqual(t, start, at)
			for ; at < start; at++ {
				out.WriteString(from[at])
			}
			inside = true
			continue
		}
		if !inside || line == "" {
			continue
		}
		switch kind, content := line[0], line[1:]; kind {
		case '\\':
			if last != less {
				pending = strings.TrimSuffix(pending, "\n")
			}
			continue
		case ' ', less:
			require.Less(t, at, len(from))
			require.Equal(t, strings.TrimSuffix(from[at], "\n"), strings.TrimSuffix(content, "\n"))
			if kind == ' ' {
				flush()
				pending = content
			}
			at++
			last = kind
		case more:
			flush()
			pending, last = content, kind
		default:
			require.Fail(t, "not a line of a patch", "%q", line)
		}
	}
	flush()
	for ; at < len(from); at++ {
		out.WriteString(from[at])
	}
	return out.String()
}

// FuzzNames checks that the header of a patch has one line for each name, and
// that git's rules read any name back from it.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"a", "a b", "a\nb", `a"b`, `a\b`, "é", "\xff", "a\tb", "b/a", "\x7f", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		d := diff.Delta{Resource: "file://ws/a", Before: resourceVersionOf([]byte("a\n")), After: resourceVersionOf([]byte("b\n"))}
		text, err := d.Text(t.Context(), name)
		require.NoError(t, err)
		all := strings.Split(text.Patch, "\n")
		require.Len(t, all, 7, "%q", text.Patch)
		for i, prefix := range map[int]string{1: "--- a/", 2: "+++ b/"} {
			shown := strings.TrimSuffix(all[i][4:], "\t")
			if strings.HasPrefix(shown, `"`) {
				shown, err = strconv.Unquote(shown)
				require.NoError(t, err)
			}
			require.Equal(t, prefix[4:]+name, shown)
		}
	})
}
