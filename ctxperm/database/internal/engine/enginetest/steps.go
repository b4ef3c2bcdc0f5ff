// Package enginetest tests kinds of databases.
package enginetest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// ending is a context that ends at the n-th check.
type ending struct {
	context.Context //nolint:containedctx // it is one

	mu   sync.Mutex // never held across a wait
	left int
	end  chan struct{}
}

// endsAt creates an ending.
func endsAt(n int) *ending {
	return &ending{Context: context.Background(), left: n, end: make(chan struct{})}
}

// Done counts the checks.
func (c *ending) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.end)
	}
	return c.end
}

// Err returns an error after the end.
func (c *ending) Err() error {
	select {
	case <-c.end:
		return context.Canceled
	default:
		return nil
	}
}

func allow(context.Context, []engine.Access) error { return nil }

var window = engine.Page{Max: 10, Bytes: 1000}

// EachStep cancels the caller at each step of a transaction that runs
// statements, and of restoring its rows. Before the commit nothing has
// happened. After it everything or nothing has. Rows are restored together or
// not at all.
func EachStep(t *testing.T, e engine.Engine, dump func() string, stride int, statements ...string) {
	before := dump()
	steps := 0
	for n := 1; ; n += stride {
		ctx := endsAt(n)
		changes := change(ctx, t, e, statements)
		if changes == nil {
			require.NotNil(t, ctx.Err(), "nothing failed at step %d", n)
		}
		if changes == nil && dump() == before {
			continue
		}
		after := dump()
		require.NotEqual(t, before, after)
		var repairs []engine.RowRestore
		for _, c := range changes {
			repairs = append(repairs, engine.RowRestore{Ref: c.Ref, From: c.Will, Want: c.Was})
		}
		_, _ = e.Read(ctx, []engine.Ref{changes[0].Ref})
		_, _ = e.Identity(ctx)
		_, _ = e.Query(ctx, engine.Statement{SQL: "SELECT 1"}, allow, window)
		if _, err := e.Restore(ctx, repairs); err != nil {
			require.Contains(t, []string{before, after}, dump(), "at step %d: %v", n, err)
		}
		if dump() != before {
			out, err := e.Restore(context.Background(), repairs)
			require.NoError(t, err)
			for _, o := range out {
				require.Empty(t, o.Why)
			}
		}
		require.Equal(t, before, dump(), "at step %d", n)
		if ctx.Err() == nil {
			steps = n
			break
		}
	}
	t.Logf("%d steps", steps)
}

// change runs one transaction. It returns nil if it had no effect.
func change(ctx context.Context, t *testing.T, e engine.Engine, statements []string) []engine.Change {
	w, err := e.Begin(ctx)
	if err != nil {
		return nil
	}
	defer w.Rollback()
	for _, text := range statements {
		if _, err := w.Execute(ctx, engine.Statement{SQL: text}, allow, window); err != nil {
			return nil
		}
	}
	if _, err := w.Query(ctx, engine.Statement{SQL: "SELECT 1"}, allow, window); err != nil {
		return nil
	}
	changes, m, err := w.Prepare(ctx, "op")
	if err != nil {
		return nil
	}
	err = w.Commit(ctx)
	fate, ferr := e.TxnOutcomeOf(context.Background(), m)
	require.NoError(t, ferr)
	require.Equal(t, err == nil, fate == engine.Committed, "%v", err)
	if err != nil {
		return nil
	}
	return changes
}
