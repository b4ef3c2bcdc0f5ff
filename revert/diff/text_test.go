package diff_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// kv is a scheme whose changes name their content.
type kv struct{ revert.Scheme }

func (kv) Name() string { return "kv" }

func (kv) View(c effect.Change) (before, after diff.ResourceVersion, err error) {
	before, after = diff.ResourceVersion{Token: c.Pre}, diff.ResourceVersion{Token: c.Post}
	for i, at := range []*diff.ResourceVersion{&before, &after} {
		if at.Token != effect.Absent {
			at.Type, at.Mode = "file", "0644"
			at.Kept, at.Digest = &c.Blobs[i], c.Blobs[i].Digest
		}
	}
	return before, after, nil
}

func (kv) Now(context.Context, string) (diff.ResourceVersion, error) {
	return diff.ResourceVersion{}, io.EOF
}

func (kv) Open(context.Context, string) (io.ReadCloser, error) { return nil, io.EOF }

// recorded returns the text of one change of x from one content to another.
func recorded(t *testing.T, from, to string) diff.Text {
	ctx := context.Background()
	j := journal.Memory()
	rec := revert.NewRecorder(j, host.Real(), "s_1").In("t_1")
	var kept []journal.Blob
	ch := effect.Change{N: 1, Scheme: "kv", Resource: "x", Kind: "write", Pre: "v1", Post: "v2"}
	for _, side := range []string{from, to} {
		b, err := j.StoreContent(ctx, strings.NewReader(side))
		require.NoError(t, err)
		kept, ch.Blobs = append(kept, b), append(ch.Blobs, b.Ref())
	}
	require.NoError(t, rec.Write(ctx, revert.Write{
		Take: journal.OwnerChange{To: journal.Ownership{Txn: "t_1", Owner: j.Owner()}}, Blobs: kept,
		Records: []revert.CallRecord{
			{Body: &record.Begun{Owner: j.Owner()}},
			{Call: "c_1", Body: &record.Started{Class: effect.Reversible, Confinement: "handles", Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`)}},
			{Call: "c_1", Body: &record.Changed{Change: ch}},
		},
	}))
	s := diff.Source{Journal: j, EnvironmentFor: func(context.Context, string) (revert.Environment, error) {
		return revert.Environment{Schemes: []revert.Scheme{kv{}}}, nil
	}}
	d, err := s.Of(ctx, "t_1")
	require.NoError(t, err)
	require.Len(t, d.Deltas, 1)
	text, err := d.Deltas[0].Text(ctx, "x")
	require.NoError(t, err)
	return text
}

func TestText(t *testing.T) {
	const head = "diff --git a/x b/x\n"
	large := strings.Repeat("0123456\n", diff.MaxText/8)
	for name, tt := range map[string]struct {
		from, to string
		want     diff.Text
	}{
		"one line":     {"a\n", "b\n", diff.Text{Short: head + "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-a\n+b\n", Added: 1, Removed: 1}},
		"from empty":   {"", "b\n", diff.Text{Short: head + "--- a/x\n+++ b/x\n@@ -0,0 +1,1 @@\n+b\n", Added: 1}},
		"like headers": {"-- a\n", "++ b\n", diff.Text{Short: head + "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n--- a\n+++ b\n", Added: 1, Removed: 1}},
		"binary":       {"a\n", "\x00", diff.Text{Short: head + "Binary files a/x (2 bytes) and b/x (1 byte) differ\n", Binary: true}},
		"no UTF-8":     {"\xff\xfe\n", "b\n", diff.Text{Short: head + "Binary files a/x (3 bytes) and b/x (2 bytes) differ\n", Binary: true}},
		"too large": {large + "more", "b\n", diff.Text{
			Short: "file x changed, mode 0644; before: 4194308 bytes, after: 2 bytes; not in the patch: more than 4194304 bytes are not compared\n",
			Lost:  "more than 4194304 bytes are not compared",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := recorded(t, tt.from, tt.to)
			require.Equal(t, !got.Binary, got.Patch == got.Short)
			got.Patch = ""
			require.Equal(t, tt.want, got)
		})
	}
	require.Equal(t, 1, recorded(t, large, large[:len(large)-1]+"x").Added, "just small enough")
}

func TestTextOfOtherResources(t *testing.T) {
	file := diff.ResourceVersion{Type: "file", Mode: "0644", Digest: "sha256:x"}
	link := diff.ResourceVersion{Type: "link", Target: "there"}
	dir := diff.ResourceVersion{Type: "dir", Mode: "0755"}
	private := diff.ResourceVersion{Type: "file", Mode: "0600", Digest: "sha256:x", Attrs: "sha256:y"}
	for name, tt := range map[string]struct {
		delta diff.Delta
		want  string
	}{
		"bits": {diff.Delta{Before: file, After: private}, "file \"a\\012b\" attributes changed\n" +
			"diff --git \"a/a\\012b\" \"b/a\\012b\"\nold mode 100644\nnew mode 100600\n"},
		"folder made": {diff.Delta{After: dir}, "dir \"a\\012b\" created, mode 0755\n"},
		"folder gone": {diff.Delta{Before: dir}, "dir \"a\\012b\" deleted, mode 0755\n"},
		"folder to link": {diff.Delta{Before: dir, After: link}, "dir \"a\\012b\" deleted, mode 0755\n" +
			"diff --git \"a/a\\012b\" \"b/a\\012b\"\nnew file mode 120000\n--- /dev/null\n+++ \"b/a\\012b\"\n@@ -0,0 +1,1 @@\n+there\n\\ No newline at end of file\n"},
		"lost":           {diff.Delta{Before: file}, "file \"a\\012b\" deleted, mode 0644; before: content not shown, after: 0 bytes; not in the patch: " + diff.ErrContentGone.Error() + "\n"},
		"unknown scheme": {diff.Delta{Before: diff.ResourceVersion{Type: "resource"}, After: diff.ResourceVersion{Type: "resource"}}, "resource \"a\\012b\" changed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := tt.delta.Text(context.Background(), "a\nb")
			require.NoError(t, err)
			require.Equal(t, tt.want, text.Patch)
		})
	}
}
