package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/tool/builtin"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// pair is two nodes of a journal. The second one has a folder.
type pair struct {
	t             *testing.T
	url, dir, txn string
	one, two      *agent.Runtime
}

func newPair(t *testing.T) *pair {
	t.Helper()
	url, _ := pgtest.Database(t)
	p := &pair{t: t, url: url, dir: t.TempDir()}
	require.NoError(t, os.Mkdir(p.at("ws"), 0o700))
	p.one, p.two = p.runtime("one"), p.runtime("two", agent.Root("workspace", p.at("ws")))
	p.write("a.txt", "new\n")
	return p
}

func (p *pair) at(name string) string { return filepath.Join(p.dir, name) }

func (p *pair) runtime(node string, opts ...agent.Option) *agent.Runtime {
	p.t.Helper()
	j, err := postgres.OpenNode(p.t.Context(), p.url, p.at(node+".st"))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = j.Close() })
	return newRuntime(p.t, append([]agent.Option{agent.Tools(builtin.Files()...), agent.Journal(j), agent.Policy(allowAll())}, opts...)...)
}

// write changes a file on the second node.
func (p *pair) write(name, content string) {
	p.t.Helper()
	tx := begin(p.t, newSession(p.t, p.two))
	_, err := tx.Invoke(p.t.Context(), "file_write", map[string]any{"path": name, "content": content})
	require.NoError(p.t, err)
	require.NoError(p.t, tx.Commit(p.t.Context()))
	p.txn = tx.ID()
}

// ask asks on the first node.
func (p *pair) ask(q revert.Request) revert.Request {
	p.t.Helper()
	_, err := p.one.Revert(p.t.Context(), p.txn, revert.Options{})
	var at *agent.NodeError
	require.ErrorAs(p.t, err, &at)
	q.Target = p.txn
	q, err = p.one.AskNode(p.t.Context(), q, at)
	require.NoError(p.t, err)
	return q
}

func (p *pair) now(q revert.Request) revert.Request {
	p.t.Helper()
	q, err := (&revert.Reverter{Journal: p.one.Journal(), Host: hosttest.New(1)}).Asked(p.t.Context(), q.Number)
	require.NoError(p.t, err)
	return q
}

func TestNodeDoesWhatIsAsked(t *testing.T) {
	p := newPair(t)
	q := p.ask(revert.Request{By: "ann"})
	done, err := p.one.DoAsked(t.Context())
	require.NoError(t, err)
	require.Empty(t, done, "the files are elsewhere")
	require.FileExists(t, p.at("ws/a.txt"))
	done, err = p.two.DoAsked(t.Context())
	require.NoError(t, err)
	require.Len(t, done, 1)
	require.NoFileExists(t, p.at("ws/a.txt"))
	q = p.now(q)
	require.Equal(t, journal.RequestDone, q.State)
	require.Equal(t, done[0].Report.RevertTxn, q.Report.RevertTxn)
	require.True(t, q.Report.Complete())

	q = p.ask(revert.Request{Redo: true})
	_, err = p.two.DoAsked(t.Context())
	require.NoError(t, err)
	require.FileExists(t, p.at("ws/a.txt"))
	require.Equal(t, revert.TxnCommitted, p.now(q).Report.State)
}

func TestNodeSaysThatForceHelps(t *testing.T) {
	p := newPair(t)
	require.NoError(t, os.WriteFile(p.at("ws/a.txt"), []byte("theirs\n"), 0o600))
	q := p.ask(revert.Request{By: "ann"})
	_, err := p.two.DoAsked(t.Context())
	require.NoError(t, err)
	q = p.now(q)
	require.False(t, q.Report.Complete())
	require.True(t, q.ForceHelps)
	q = p.ask(revert.Request{By: "ann", Force: true})
	_, err = p.two.DoAsked(t.Context())
	require.NoError(t, err)
	require.True(t, p.now(q).Report.Complete())
	require.False(t, p.now(q).ForceHelps)
	require.NoFileExists(t, p.at("ws/a.txt"))
}

// TestNodeRefusesWhatIsAsked: a request that cannot be carried out fails for
// good, and does not stop the next one.
func TestNodeRefusesWhatIsAsked(t *testing.T) {
	p := newPair(t)
	open := begin(t, newSession(t, p.two))
	_, err := open.Invoke(t.Context(), "file_write", map[string]any{"path": "b.txt", "content": "b\n"})
	require.NoError(t, err)
	done := p.txn
	p.txn = open.ID()
	busy := p.ask(revert.Request{})
	p.txn = done
	next := p.ask(revert.Request{})
	_, err = p.runtime("two").DoAsked(t.Context()) // another process of the node
	require.NoError(t, err)
	require.Equal(t, journal.RequestFailed, p.now(busy).State)
	require.Contains(t, p.now(busy).Why, revert.ErrBusy.Error())
	require.Equal(t, journal.RequestDone, p.now(next).State)
	require.FileExists(t, p.at("ws/b.txt"))
}

// TestNodeGivesBackWhatIsAsked: work that was cancelled is left to the next
// process.
func TestNodeGivesBackWhatIsAsked(t *testing.T) {
	p := newPair(t)
	q := p.ask(revert.Request{})
	ctx, cancel := context.WithCancel(t.Context())
	h := hosttest.New(2)
	h.OnPoint = func(id string) error {
		if id == "request.taken" {
			cancel()
		}
		return nil
	}
	_, err := p.runtime("two", agent.Host(h)).DoAsked(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.FileExists(t, p.at("ws/a.txt"))
	require.Equal(t, journal.RequestAsked, p.now(q).State)

	broken := errors.New("broken")
	h = hosttest.New(3)
	h.OnPoint = func(id string) error {
		if strings.HasPrefix(id, "request.answer") {
			return broken
		}
		return nil
	}
	_, err = p.runtime("two", agent.Host(h)).DoAsked(t.Context())
	require.ErrorIs(t, err, broken)
	require.NoFileExists(t, p.at("ws/a.txt"))
	require.Equal(t, journal.RequestAsked, p.now(q).State)
	_, err = p.two.DoAsked(t.Context())
	require.NoError(t, err)
	require.True(t, p.now(q).Report.Complete())
	require.Len(t, p.now(q).Report.Items, 1, "what the process before did")
}

func TestNoNodesNoRequests(t *testing.T) {
	done, err := newRuntime(t).DoAsked(t.Context())
	require.NoError(t, err)
	require.Empty(t, done)
	_, err = newRuntime(t).AskNode(t.Context(), revert.Request{}, &agent.NodeError{Node: "n_1", Txn: "t_1"})
	require.ErrorContains(t, err, "no other nodes")
}
