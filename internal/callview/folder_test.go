package callview_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/record"
)

// TestFolderAt: a folder counts as long as no other one replaced it.
func TestFolderAt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workspace")
	require.NoError(t, os.Mkdir(dir, 0o700))
	open, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	id, err := canon.Marshal(open.Identity())
	require.NoError(t, err)
	require.NoError(t, open.Close())
	root := record.Root{Name: "workspace", Path: dir, Identity: id}
	require.Equal(t, callview.Folder{Path: dir}, callview.FolderAt(root))
	require.NoError(t, os.Rename(dir, dir+".was"))
	require.NotEmpty(t, callview.FolderAt(root).Missing, "there is none")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.Contains(t, callview.FolderAt(root).Missing, "another folder is at "+dir)
	require.NotEmpty(t, callview.FolderAt(record.Root{Name: "workspace", Path: dir}).Missing, "the record does not tell")
}
