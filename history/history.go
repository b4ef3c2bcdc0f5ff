// Package history has the questions of a policy about the earlier calls of a
// session, and their answers. The functions happened, before, count and sum of
// data.remit.lib ask them.
package history

import (
	"encoding/json"
	"time"
)

// Call is an earlier call of a session that has ended.
type Call struct {
	Tool    string `json:"tool"`
	Outcome string `json:"outcome"` // done, denied, failed, verify_failed, cancelled, timeout, unknown
	// Effect is the effect class of the call. Empty: unknown, as its record was
	// erased.
	Effect string `json:"effect,omitempty"`
	// Resources are those of the accesses that the policy decided before the
	// call. Nil: unknown, as the record of the call was erased.
	Resources []string `json:"resources,omitzero"`
	// Args are the arguments. Nil: unknown, as the record was erased.
	Args json.RawMessage `json:"args,omitempty"`
	At   time.Time       `json:"at,omitzero"` // end of the call
}

// Query selects earlier calls. The zero Query selects each call whose code ran.
type Query struct {
	Tool     string // name, with * for any characters
	Effect   string // effect class
	Resource string // text of a perm.Pattern without parameters
	Outcome  string // empty: each but denied

	// Window is the part of the session: a duration such as 10m, a number of
	// calls such as 20, or empty for the whole session. Now is the end of a
	// duration.
	Window string
	Now    time.Time

	// Sum is a JSON pointer to an argument, such as /amount. The answer has the
	// sum of it. Empty: no sum.
	Sum string
}

// Answer tells about the calls that match a query.
type Answer struct {
	Count int
	Sum   json.Number // exact; empty: the query has no Sum
	Last  int         // place of the last match among all calls, by their ends, from 1; 0: none
}

// Source answers queries about the calls of a session that ended before one
// moment. It returns an error if the answer depends on what was erased. Its
// answers never change, and it is safe for concurrent use.
type Source interface {
	Find(q Query) (Answer, error)
}
