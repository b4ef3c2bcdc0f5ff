// Package filter has ready filters for the calls of a runtime: Cache, Rate, Budget,
// Redact and Log. Each constructor returns the filter, or an error if its settings are
// not valid. The option agent.Filters adds filters to a runtime, in the order in which
// they see a call:
//
//	budget, err := filter.Budget{Session: filter.Usage{Calls: 20}}.Filter()
//	...
//	rt, err := agent.New(agent.Filters(log, keys, budget, cache))
//
// A result comes back through them in the opposite order. So what looks at everything
// stands first, and what answers in a tool's place last: nothing is then delivered that
// Redact has not seen, and what the cache answers is counted and logged.
//
// What these filters know is of this process. What must hold across restarts is a limit
// of the policy, which the journal counts.
package filter
