// Package filter has ready filters for the calls of a runtime: Cache, Rate, Budget,
// Redact and Log. What a filter is, and can do, package tool says; agent.Filters adds
// them, in the order in which they are asked:
//
//	agent.Filters(filter.Log(logger), filter.Redact(keys), filter.Budget{Session: filter.Usage{Calls: 20}}.Filter(), filter.Cache{}.Filter())
//
// A result comes back through them in the opposite order. So what looks at everything
// stands first, and what answers in a tool's place last: nothing is then delivered that
// Redact has not seen, and what the cache answers is counted and logged.
//
// What these filters know is of this process. What must hold across restarts is a limit
// of the policy, which the journal counts.
package filter
