package database

import "github.com/remit-dev/remit/ctxperm/database/internal/engine"

// init lets the packages below this one make kinds.
func init() { engine.Install(func(k engine.Kind) Kind { return Kind{k} }) }
