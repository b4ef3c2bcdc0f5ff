package agent_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// readers makes tools, each of which reads a folder of its own.
func readers(t *testing.T, n int) []tool.Tool {
	var list []tool.Tool
	for i := range n {
		r, err := tool.CreateWith(fmt.Sprint("reader_", i), "Reads.", []perm.ResourceAccess{perm.Access(perm.Read, fmt.Sprintf("file://data/folder_%d/**", i))},
			func(context.Context, ctxperm.ToolContext, string) (string, error) { return "", nil }, tool.Pure())
		require.NoError(t, err)
		list = append(list, r)
	}
	return list
}

func folder(i int) perm.ResourceAccess {
	return perm.Access(perm.Read, fmt.Sprintf("file://data/folder_%d/a", i))
}

// sessionRecords returns the records that opened sessions, in order.
func sessionRecords(t *testing.T, j journal.Journal) (out []*record.Session) {
	for e, err := range j.Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindSession}}) {
		require.NoError(t, err)
		r, err := record.Unseal(e)
		require.NoError(t, err)
		body, ok := r.Body.(*record.Session)
		require.True(t, ok)
		out = append(out, body)
	}
	return out
}

// TestLargeGrantIsShared checks that sessions of many tools name one grant on
// the journal, and that another process resumes them with exactly this grant,
// also after garbage was collected.
func TestLargeGrantIsShared(t *testing.T) {
	for name, n := range map[string]int{"none": 0, "inline": 20, "content of the batch": 200, "a file": 3_000} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "journal")
			open := func(tools []tool.Tool) (*agent.Runtime, journal.Journal) {
				j, err := sqlite.Open(context.WithoutCancel(t.Context()), dir)
				require.NoError(t, err)
				return newRuntime(t, agent.Tools(tools...), agent.Journal(j)), j
			}
			all := readers(t, n+1)
			rt, j := open(all[:n])
			var tokens []string
			for range 3 {
				tokens = append(tokens, newSession(t, rt).Token())
			}
			require.NoError(t, rt.SetTools(all...))
			wider := newSession(t, rt)
			require.True(t, wider.Allows(folder(n)))
			less, err := rt.Session(t.Context(), perm.Principal{ID: "ada", Kind: "agent"}, agent.Except(folder(n)))
			require.NoError(t, err)
			require.False(t, less.Allows(folder(n)), "not the whole grant")
			for _, body := range sessionRecords(t, j) {
				require.NotEqual(t, body.GrantContent == nil, body.Grant == nil)
				require.Equal(t, n >= 100, body.GrantContent != nil)
			}
			_, err = j.CollectGarbage(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, rt.Close())
			require.NoError(t, j.Close())

			rt, j = open(all)
			for _, token := range tokens[:2] {
				s, err := rt.ResumeSession(t.Context(), token)
				require.NoError(t, err)
				require.Equal(t, n > 0, s.Allows(folder(0)))
				require.False(t, s.Allows(folder(n)), "new tools add nothing")
			}
			require.NoError(t, rt.Close())
			require.NoError(t, j.Close())
		})
	}
}

// pruned is a journal whose content is gone when a test says so, as after the
// records that named it were pruned.
type pruned struct {
	journal.Journal
	gone map[string]bool
}

func (f pruned) Append(ctx context.Context, b journal.Batch) error {
	for _, blob := range b.Blobs {
		if !blob.Inline().IsPresent() && f.gone[blob.Ref().Digest] {
			return fmt.Errorf("blob %s: %w", blob.Ref().Digest, journal.ErrNotFound)
		}
		delete(f.gone, blob.Ref().Digest)
	}
	return f.Journal.Append(ctx, b)
}

// TestPrunedGrantIsStoredAgain checks that a session opens although the grant
// that earlier sessions named is no longer on the journal, and that a session
// whose own grant is lost holds nothing.
func TestPrunedGrantIsStoredAgain(t *testing.T) {
	j := pruned{journal.Memory(), map[string]bool{}}
	rt := newRuntime(t, agent.Tools(readers(t, 300)...), agent.Journal(j))
	newSession(t, rt)
	ref := sessionRecords(t, j)[0].GrantContent
	require.NotNil(t, ref)
	j.gone[ref.Digest] = true
	require.True(t, newSession(t, rt).Allows(folder(299)))
	require.Empty(t, j.gone, "it was stored again")
	newSession(t, rt)
	require.Len(t, sessionRecords(t, j), 3)

	other := newRuntime(t, agent.Tools(readers(t, 300)...), agent.Journal(lost{j}))
	_, err := other.ResumeSession(t.Context(), newSession(t, rt).Token())
	require.ErrorIs(t, err, journal.ErrNotFound)
}

// lost is a journal that has no content.
type lost struct{ journal.Journal }

func (lost) OpenContent(_ context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	return nil, fmt.Errorf("blob %s: %w", ref.Digest, journal.ErrNotFound)
}
