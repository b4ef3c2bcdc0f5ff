package agent

import "time"

// ClaimTimeout lets the calls of a session wait so long for a resource that another
// open transaction holds; without it, and unless tool.Limits.ClaimTimeout says otherwise,
// they fail at once and name the holder. A call that waits counts against its own
// timeout, and claims what it is about to change before it looks at it. Of two
// transactions of one runtime that would wait for each other one is refused at
// once.
func ClaimTimeout(d time.Duration) SessionOption {
	return func(c *sessionConfig) { c.limits.ClaimTimeout = max(d, 0) }
}
