//go:build !linux

package process

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

var errNoSnapshots = errors.New("what whole folders hold can be kept on Linux alone; name the files that a tool changes by its arguments instead")

type fileStamp struct{}

type mark struct{}

// snapshotStore is unused here: there are no snapshots.
type snapshotStore struct{}

func (*snapshotStore) close() {}

func (*Snapshotter) await(context.Context, host.Host, string) (*os.File, error) {
	return nil, errNoSnapshots
}

func (*Snapshotter) tree(context.Context, *callstate.Call, Folder, SnapshotOptions) (*folderCopy, error) {
	return nil, errNoSnapshots
}

func (*folderCopy) conclude() {}

func (*folderCopy) discard() {}

func (*folderCopy) left() {}

func (*folderCopy) end() {}

func (*folderCopy) recorded() {}

func (*folderCopy) announce(*files.DetectedChanges) error { return errNoSnapshots }

func flush(*os.File) error { return errNoSnapshots }

func (*folderCopy) differences(context.Context, *Driver, time.Time) ([]files.FilePreImage, error, error) {
	return nil, nil, errNoSnapshots
}

// Find finds nothing: no call here has a snapshot.
func (changeFinder) Find(context.Context, revert.Call, journal.ContentStore) (revert.DiscoveredChanges, error) {
	return revert.DiscoveredChanges{}, nil
}
