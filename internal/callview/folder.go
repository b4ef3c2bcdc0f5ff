package callview

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Folder is where the files of a root are now.
type Folder struct {
	Path    string
	Missing string // why the files are not at hand; empty: they are at Path
}

// FoldersOf returns the folders of a session's roots by name. A named folder
// replaces the recorded one: a person vouches for it. A recorded folder counts
// only on its node, and only if no other folder replaced it.
func FoldersOf(ctx context.Context, j journal.Journal, session string, named map[string]string) (map[string]Folder, error) {
	all := map[string]Folder{}
	body, err := SessionRecord(ctx, j, session)
	if err != nil {
		return nil, err
	}
	if body != nil {
		for _, r := range body.Roots {
			all[r.Name] = folderOf(j, r)
		}
	}
	for name, dir := range named {
		all[name] = Folder{Path: dir}
	}
	return all, nil
}

func folderOf(j journal.Journal, r record.Root) Folder {
	node := ""
	if n, ok := j.(interface{ NodeID() string }); ok {
		node = n.NodeID()
	}
	if r.Node != node {
		return Folder{r.Path, fmt.Sprintf("the files belong to node %s; root %q is %s there", r.Node, r.Name, r.Path)}
	}
	return FolderAt(r)
}

// FolderAt returns the folder of a root of this node.
func FolderAt(r record.Root) Folder {
	f := Folder{Path: r.Path}
	if !isRecorded(r) {
		f.Missing = fmt.Sprintf("root %q: another folder is at %s now, or none", r.Name, r.Path)
	}
	return f
}

// isRecorded reports whether the recorded folder is still at its path.
func isRecorded(r record.Root) bool {
	open, err := disk.OpenRoot(r.Path)
	if err != nil {
		return false
	}
	is := open.Identity()
	var was disk.Identity
	return open.Close() == nil && canon.Decode(r.Identity, &was) == nil && (is.Is(was) || is.IsAgain(was))
}
