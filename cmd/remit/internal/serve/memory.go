package serve

import (
	"runtime/debug"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// limitMemory lets garbage gather: a server makes a lot of it with each call and keeps next to nothing, so that to look for what is kept
// is most of what collecting costs. How much the process holds is bounded instead: from modest on it is collected eagerly, and more is
// taken where more is in use. GOGC and GOMEMLIMIT say otherwise.
func limitMemory(a *cli.App) {
	if a.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(modest)
	}
	if a.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

const modest = 320 << 20
