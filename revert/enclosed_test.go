package revert_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// TestNoRestoreBelowAReplacement checks a resource that a call removed. It is
// not restored below a resource that replaced one that a later call had
// removed: there it was kept from others.
func TestNoRestoreBelowAReplacement(t *testing.T) {
	ctx := t.Context()
	before := map[string]string{"kv://r/d": "private", "kv://r/d/s": "1", "kv://r/e": "1"}
	w := &kvStore{map[string]string{}}
	for k, v := range before {
		w.values[k] = v
	}
	p := newProcess(journal.SharedMemory(), w, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	for _, key := range []string{"kv://r/e", "kv://r/d/s", "kv://r/d"} {
		_, err = p.call(ctx, rec, put(write{key, nil}))
		require.NoError(t, err)
	}
	require.NoError(t, p.commit(ctx, rec))
	w.values["kv://r/d"] = "open"

	rep, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"kv://r/d": "open", "kv://r/e": "1"}, w.values)
	left := rep.NotReverted()
	require.Len(t, left, 2)
	require.Equal(t, "kv://r/d/s", left[1].Resource)
	require.Contains(t, left[1].Why, "was removed by a later call")

	delete(w.values, "kv://r/d") // as the call left it
	rep, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, before, w.values)
}

// TestRestoreBelowAChange checks that a removed resource is restored below a
// resource that a later call changed and did not remove, for any current value.
func TestRestoreBelowAChange(t *testing.T) {
	ctx := t.Context()
	w := &kvStore{map[string]string{"kv://r/d": "private", "kv://r/d/s": "1"}}
	p := newProcess(journal.SharedMemory(), w, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	for _, one := range []write{{"kv://r/d/s", nil}, {"kv://r/d", "changed"}} {
		_, err = p.call(ctx, rec, put(one))
		require.NoError(t, err)
	}
	require.NoError(t, p.commit(ctx, rec))
	w.values["kv://r/d"] = "open"

	rep, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Len(t, rep.NotReverted(), 1)
	require.Equal(t, map[string]string{"kv://r/d": "open", "kv://r/d/s": "1"}, w.values)
}
