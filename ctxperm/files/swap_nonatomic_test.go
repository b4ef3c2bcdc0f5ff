package files_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
)

// weakRoot is a root on a file system without exchange and without rename that
// does not replace. It sees no writers.
type weakRoot struct{ disk.Root }

func (r weakRoot) Exchange(string, string) error        { return disk.ErrUnsupported }
func (r weakRoot) RenameNoReplace(string, string) error { return disk.ErrUnsupported }
func (r weakRoot) TryLease(string) error                { return disk.ErrUnsupported }

func (r weakRoot) Features() disk.Features {
	f := r.Root.Features()
	f.Exchange, f.NoReplace, f.Lease = false, false, false
	return f
}

// renamingRoot can rename without replacing, but not exchange.
type renamingRoot struct{ disk.Root }

func (r renamingRoot) Exchange(string, string) error { return disk.ErrUnsupported }

func (r renamingRoot) Features() disk.Features {
	f := r.Root.Features()
	f.Exchange = false
	return f
}

// lyingRoot promises an exchange that it does not have.
type lyingRoot struct{ disk.Root }

func (r lyingRoot) Exchange(string, string) error { return disk.ErrUnsupported }

// systems returns the file systems that the tests run on.
func systems() map[string]func(disk.Root) disk.Root {
	return map[string]func(disk.Root) disk.Root{
		"exchange": func(r disk.Root) disk.Root { return r },
		"rename":   func(r disk.Root) disk.Root { return renamingRoot{r} },
		"neither":  func(r disk.Root) disk.Root { return weakRoot{r} },
	}
}

// TestNonAtomicIsNeverSilent checks that a file system that promises to exchange,
// but cannot, does not fall back to the non-atomic order.
func TestNonAtomicIsNeverSilent(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	if !w.root.Features().Exchange {
		t.Skip("no exchange here")
	}
	w.root = lyingRoot{w.root}
	before := w.tree()
	write := actions()[3]
	require.ErrorIs(t, w.do(w.host(), write.do), disk.ErrUnsupported)
	require.Equal(t, before, w.tree())
	f := w.files(w.call(w.host()))
	require.True(t, f.Features().Exchange)
	w.root = weakRoot{w.root}
	f = w.files(w.call(w.host()))
	require.False(t, f.Features().Exchange)
	require.False(t, f.Features().Writers)
}
