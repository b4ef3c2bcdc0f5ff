package files_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
)

// gives is a root whose file system has the given features.
type gives struct {
	disk.Root
	features disk.Features
}

func (g gives) Features() disk.Features { return g.features }

// TestFeatures checks that a handle reports exactly what its file system
// supports.
func TestFeatures(t *testing.T) {
	for _, tt := range []struct {
		gives disk.Features
		want  files.Features
	}{
		{disk.Features{}, files.Features{}},
		{disk.Features{Exchange: true}, files.Features{}},
		{disk.Features{Exchange: true, NoReplace: true}, files.Features{Exchange: true}},
		{disk.Features{Lease: true}, files.Features{Writers: true}},
		{disk.Features{Xattrs: true}, files.Features{Xattrs: true}},
		{disk.Features{DirSync: true}, files.Features{Durable: true}},
	} {
		w := newTestEnv(t)
		w.root = gives{w.root, tt.gives}
		require.Equal(t, tt.want, w.files(w.begin(w.host())).Features(), "%+v", tt.gives)
	}
}
