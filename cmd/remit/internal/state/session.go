package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
)

// workspaceOf is the workspace that a session's record names, ok false where it names none.
func workspaceOf(body *record.Session) (r record.Root, ok bool) {
	i := slices.IndexFunc(body.Roots, func(r record.Root) bool { return r.Name == WorkspaceRoot })
	if i < 0 {
		return r, false
	}
	return body.Roots[i], true
}

// sessionRecord is the record of one session, nil where there is none.
func sessionRecord(ctx context.Context, j journal.Journal, session string) (*record.Session, error) {
	return firstSession(ctx, j, journal.Query{Session: session, Kinds: []kind.Kind{kind.Session}, Limit: 1}, func(*record.Session) bool { return true })
}

// firstSession is the first record of a session for which is holds, nil where there is none.
func firstSession(ctx context.Context, j journal.Journal, q journal.Query, is func(*record.Session) bool) (*record.Session, error) {
	for e, err := range j.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		if e.Erased != "" {
			continue
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return nil, err
		}
		if body, ok := rec.Body.(*record.Session); ok && is(body) {
			return body, nil
		}
	}
	return nil, nil
}

// sessionOfID is the record of the session that a transaction or a call belongs to, nil
// where nothing has that id.
func sessionOfID(ctx context.Context, j journal.Journal, id string) (*record.Session, error) {
	t, _, err := revert.LoadCall(ctx, j, id)
	if errors.Is(err, journal.ErrNotFound) {
		t, err = revert.Load(ctx, j, id)
	}
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return sessionRecord(ctx, j, t.Session)
}

// Principal is who a session belongs to, as its record says.
type Principal struct {
	ID     string
	Client *perm.ClientFacts // who its tools and results are shown to; nil: nobody said
	roots  []string          // NAME=DIR, as they were
}

func PrincipalOf(ctx context.Context, j journal.Journal, session string) (who Principal, err error) {
	q := journal.Query{Session: session, Kinds: []kind.Kind{kind.Session}, Limit: 1}
	for e, err := range j.Entries(ctx, q) {
		if err != nil {
			return who, err
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return who, err
		}
		body, ok := rec.Body.(*record.Session)
		if !ok {
			continue
		}
		var p perm.Principal
		if json.Unmarshal(body.Principal, &p) == nil {
			who.ID = p.ID
		}
		if len(body.Client) > 0 {
			who.Client = &perm.ClientFacts{}
			if err := json.Unmarshal(body.Client, who.Client); err != nil {
				return who, fmt.Errorf("who session %s is shown to: %w", session, err)
			}
		}
		for _, r := range body.Roots {
			who.roots = append(who.roots, r.Name+"="+r.Path)
		}
	}
	return who, nil
}
