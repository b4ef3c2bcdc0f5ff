package state

import (
	"context"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert/journal"
)

// maxCandidates limits the IDs that a message names for an ambiguous beginning.
const maxCandidates = 8

// FullID returns the ID of the transaction or the call that begins with a text.
// It returns the text itself if it is an ID, or if no ID begins with it: then
// the verb says that there is none. It returns an error if several IDs begin
// with the text.
func FullID(ctx context.Context, j journal.Journal, id string) (string, error) {
	if !canBeShort(id) {
		return id, nil
	}
	found, err := journal.FindIDs(ctx, j, id, maxCandidates+1)
	if err != nil {
		return id, err
	}
	return OnlyID(id, found)
}

// OnlyID is FullID with the sorted IDs that begin with the text.
func OnlyID(id string, found []string) (string, error) {
	switch {
	case len(found) == 0 || found[0] == id:
		return id, nil
	case len(found) == 1:
		return found[0], nil
	}
	p := cli.UsageProblem("several IDs begin with " + cli.Quote(id))
	p.Fix = "give more of the ID: " + strings.Join(found[:min(len(found), maxCandidates)], ", ")
	if len(found) > maxCandidates {
		p.Fix += ", and others"
	}
	return "", p
}

// canBeShort reports whether a text can be the beginning of an ID of remit, such
// as "t_0h3k". The IDs of clients look otherwise.
func canBeShort(id string) bool {
	const whole = len("t_0h3k5z9q1c7e")
	if len(id) < len("t_0") || len(id) >= whole || id[1] != '_' || id[0] < 'a' || id[0] > 'z' {
		return false
	}
	return !strings.ContainsFunc(id[2:], func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}
