package serve

import (
	"runtime/debug"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// limitMemory makes garbage collection rarer. A server allocates much per call
// and retains little, so most of the cost of a collection is marking. A soft
// memory limit makes collections more frequent for a large heap. GOGC and
// GOMEMLIMIT override both.
func limitMemory(a *cli.App) {
	if a.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if a.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

const memoryLimit = 320 << 20
