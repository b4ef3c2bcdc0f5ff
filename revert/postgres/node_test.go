package postgres_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/revert/record"
)

func openNode(t testing.TB, url, dir string, opts ...postgres.Option) *postgres.Node {
	t.Helper()
	n, err := postgres.OpenNode(context.Background(), url, dir, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func TestNodeIsAJournal(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journaltest.Opener {
		url, schema := storage(t)
		dir := filepath.Join(t.TempDir(), "state")
		return func(t *testing.T) journal.Journal {
			n, err := postgres.OpenNode(t.Context(), url, dir, schema)
			require.NoError(t, err)
			return n
		}
	})
}

func TestNodesAreListed(t *testing.T) {
	url, schema := storage(t)
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	a := openNode(t, url, first, schema)
	again := openNode(t, url, first, schema)
	b := openNode(t, url, second, schema)
	require.Equal(t, a.NodeID(), again.NodeID(), "one folder is one node")
	require.NotEqual(t, a.NodeID(), b.NodeID())
	roots := []record.Root{{Name: "workspace", Path: "/w", Node: b.NodeID()}}
	require.NoError(t, b.SetRoots(t.Context(), roots))
	require.NoError(t, a.Close())

	nodes, err := b.Nodes(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	require.Equal(t, []string{a.NodeID(), first}, []string{nodes[0].ID, nodes[0].Dir})
	require.Equal(t, 1, nodes[0].Processes, "the second opening lives")
	require.False(t, nodes[0].Since.IsZero())
	require.Equal(t, roots, nodes[1].Roots)

	require.NoError(t, again.Close())
	nodes, err = b.Nodes(t.Context())
	require.NoError(t, err)
	require.Zero(t, nodes[0].Processes)
	require.True(t, nodes[0].Since.IsZero())
	require.Equal(t, a.NodeID(), openNode(t, url, first, schema).NodeID(), "the identity outlives the processes")
}

// TestCopiedStateFolder: a copy of a node's folder is refused while the node
// lives. Afterwards it is the node, because the folder may have been moved.
func TestCopiedStateFolder(t *testing.T) {
	url, schema := storage(t)
	dir, copied := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "copied")
	n := openNode(t, url, dir, schema)
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	require.NoError(t, os.Chmod(copied, 0o700))
	_, err := postgres.OpenNode(t.Context(), url, copied, schema)
	require.ErrorIs(t, err, postgres.ErrCopiedNode)
	require.ErrorContains(t, err, dir)
	require.NoError(t, n.Close())
	require.Equal(t, n.NodeID(), openNode(t, url, copied, schema).NodeID())
	_, err = postgres.OpenNode(t.Context(), url, dir, schema)
	require.ErrorIs(t, err, postgres.ErrCopiedNode)
}

// TestCopyDuringACut: while an opening has no connection, a copy of its folder
// can become the node. Then the opening is out, and does not become a second one.
func TestCopyDuringACut(t *testing.T) {
	url, schema := storage(t)
	p := newProxy(t, url)
	dir, copied := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "copied")
	n := openNode(t, p.url(t, url), dir, schema)
	require.NoError(t, n.Append(t.Context(), journal.Batch{Entries: pair("t", 0), Durable: true}))
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	require.NoError(t, os.Chmod(copied, 0o700))
	p.cutAll(true)
	var second *postgres.Node
	for second == nil { // the server still has to notice that the connection is gone
		var err error
		if second, err = postgres.OpenNode(t.Context(), url, copied, schema); err != nil {
			require.ErrorIs(t, err, postgres.ErrCopiedNode)
		}
	}
	t.Cleanup(func() { require.NoError(t, second.Close()) })
	p.cutAll(false)
	err := n.Append(t.Context(), journal.Batch{Entries: pair("t", 1), Durable: true})
	require.ErrorIs(t, err, postgres.ErrFenced)
	require.ErrorIs(t, err, postgres.ErrCopiedNode)
	require.ErrorContains(t, err, copied)
	require.Equal(t, 2, requireSequence(t, second, "t"))
	alive, err := n.Alive(t.Context(), n.Owner())
	require.NoError(t, err)
	require.False(t, alive, "it knows")
}

// TestTwoProcessesMakeOneIdentity: openings that find no identity agree on one.
func TestTwoProcessesMakeOneIdentity(t *testing.T) {
	url, schema := storage(t)
	until(t, url, schema)
	dir := filepath.Join(t.TempDir(), "state")
	ids := make([]string, 4)
	var done sync.WaitGroup
	for i := range ids {
		done.Go(func() {
			n, err := postgres.OpenNode(context.Background(), url, dir, schema)
			if err == nil {
				ids[i] = n.NodeID()
				_ = n.Close()
			}
		})
	}
	done.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
		require.NotEmpty(t, id)
	}
}

// TestFilesOfTwoNodes: a claim of a file holds on its node, and other claims on
// all nodes.
func TestFilesOfTwoNodes(t *testing.T) {
	url, schema := storage(t)
	a, b := openNode(t, url, filepath.Join(t.TempDir(), "a"), schema), openNode(t, url, filepath.Join(t.TempDir(), "b"), schema)
	second := openNode(t, url, a.Dir(), schema)
	claim := func(j journal.Journal, txn string, claims ...string) error {
		own := journal.Ownership{Txn: txn, Owner: j.Owner()}
		return j.Append(t.Context(), journal.Batch{Fence: own, Take: journal.OwnerChange{To: own}, Claims: claims})
	}
	require.NoError(t, claim(a, "t_a", "file://workspace/a.txt", "db://main/t"))
	require.NoError(t, claim(b, "t_b", "file://workspace/a.txt"))
	err := claim(second, "t_c", "file://workspace/a.txt")
	require.Equal(t, &journal.ClaimedError{Resource: "file://workspace/a.txt", Holder: "t_a"}, err)
	require.ErrorIs(t, claim(b, "t_d", "db://main/t"), journal.ErrClaimed)
}

func TestNoFolderForNoJournal(t *testing.T) {
	url, schema := storage(t)
	dir := filepath.Join(t.TempDir(), "state")
	_, err := postgres.OpenNode(t.Context(), url, dir, schema, postgres.Existing())
	require.ErrorIs(t, err, postgres.ErrNoJournal)
	require.NoDirExists(t, dir)
	require.False(t, postgres.HasNode(dir))
	openNode(t, url, dir, schema)
	require.True(t, postgres.HasNode(dir))
	openNode(t, url, dir, schema, postgres.Existing())
}

func TestNodeNeedsAPrivateFolder(t *testing.T) {
	url, schema := storage(t)
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(dir, 0o755)) //nolint:gosec // it is what the test is about
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // as above
	_, err := postgres.OpenNode(t.Context(), url, dir, schema)
	require.ErrorContains(t, err, "chmod 700")
	require.NoError(t, os.Chmod(dir, 0o700))
	for _, text := range []string{"{", `{"id":""}`, `{"id":"n_"}`, `{"id":"n_\u001b[2Jxxxxxxxxxxxx"}`, `{"id":"n_abcdefghijklmno1"}`, `{"id":"n_abcdefghijklmnop\n"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "node.json"), []byte(text), 0o600))
		_, err = postgres.OpenNode(t.Context(), url, dir, schema)
		require.ErrorContains(t, err, "damaged", text)
	}
}
