package tool

import (
	"time"

	"github.com/remit-dev/remit/revert/effect"
)

// OperationKey makes the key of a call reachable for its golden vectors.
var OperationKey = operationKey

// TimeToVerify is how long a Verify of a call with such changes may take.
func TimeToVerify(l Limits, changes []effect.Change) time.Duration { return l.timeToVerify(changes) }
