package callview

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Filter selects calls. An empty field selects all.
type Filter struct {
	Tool    string    // part of the tool's name
	Outcome string    // status, as Status returns it
	Path    string    // part of the name of a resource that the call changed or accessed
	From    time.Time // the transaction began then or later
	To      time.Time // the transaction began then or earlier
}

// Query returns the query for the records of which each transaction with a
// selected call has one, newest first: as few as the indexes of the journal
// allow.
func (f Filter) Query() journal.Query {
	q := journal.Query{Newest: true, Kinds: []record.Kind{record.KindBegun}}
	switch {
	case f.Path != "":
		// These name what a call changed, was refused, or waits for.
		q.Kinds = []record.Kind{record.KindChanged, record.KindDenied, record.KindAsked, record.KindFailed, record.KindHeld}
		q.About = resourceTexts(f.Path)
	case f.Outcome == string(revert.PhaseDenied):
		q.Kinds = []record.Kind{record.KindDenied}
	case f.Outcome == string(revert.PhaseInvalid):
		q.Kinds = []record.Kind{record.KindInvalid}
	}
	return q
}

// Narrows reports whether the filter can leave out calls of a transaction.
func (f Filter) Narrows() bool { return f.Tool+f.Outcome+f.Path != "" }

// SelectsTxn reports whether the filter selects a transaction by its time.
func (f Filter) SelectsTxn(t *revert.Txn) bool {
	return (f.From.IsZero() || !t.Began.Before(f.From)) && (f.To.IsZero() || !t.Began.After(f.To))
}

// Selects reports whether the filter selects a call of a transaction that it
// selects.
func (f Filter) Selects(c *revert.Call) bool {
	return (f.Tool == "" || strings.Contains(c.Tool.Name, f.Tool)) && (f.Outcome == "" || Status(c) == f.Outcome) && (f.Path == "" || touches(c, f.Path))
}

// touches reports whether a call changed or accessed a resource whose name
// contains a text.
func touches(c *revert.Call, text string) bool {
	for _, ch := range c.Changes {
		if named(ch.Resource, text) {
			return true
		}
	}
	return slices.ContainsFunc(AttemptOf(c).Access, func(a record.Access) bool { return named(a.Resource, text) })
}

// named reports whether the name of a resource contains a text: without the root workspace, unless the text is of a URI.
func named(resource, text string) bool {
	if strings.Contains(text, "://") {
		return strings.Contains(resource, text)
	}
	return strings.Contains(Resource(resource), text) || strings.Contains(strings.TrimPrefix(resource, "file://workspace"), text)
}

// resourceTexts returns a text as records have it: as it is, and as a part of
// the name of a resource.
func resourceTexts(text string) []string {
	all := []string{InJSON(text)}
	r, err := perm.FileResource("workspace", strings.Trim(text, "/"))
	if err != nil {
		return all
	}
	if name := InJSON(strings.TrimPrefix(r.String(), "file://workspace/")); name != all[0] {
		all = append(all, name)
	}
	return all
}

// InJSON returns a text as it is inside a string of a record.
func InJSON(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) != nil {
		return text
	}
	return strings.Trim(strings.TrimSpace(b.String()), `"`)
}
