package agent

import (
	"fmt"
	"time"
)

// ClaimTimeout bounds how long the calls of a session wait for a resource that
// another open transaction claims. Default: tool.Limits.ClaimTimeout, and
// without that they fail at once and name the transaction. The wait counts
// against the call's own timeout. A call claims a resource before it reads it
// to change it. If two transactions of one runtime would wait for each other,
// one is refused at once.
func ClaimTimeout(d time.Duration) SessionOption {
	return func(c *sessionConfig) {
		if c.limits.ClaimTimeout = d; d < 0 {
			c.wrong = fmt.Errorf("ClaimTimeout %s: must not be negative", d)
		}
	}
}
