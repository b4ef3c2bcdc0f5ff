//go:build !darwin && (portable || !linux)

package process

import "os"

// syncPlain gives the data of a file to the disk.
var syncPlain = (*os.File).Sync
