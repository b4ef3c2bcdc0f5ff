package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// workspaceOf returns the workspace of a session record. ok is false if the
// record names none.
func workspaceOf(body *record.Session) (r record.Root, ok bool) {
	i := slices.IndexFunc(body.Roots, func(r record.Root) bool { return r.Name == WorkspaceRoot })
	if i < 0 {
		return r, false
	}
	return body.Roots[i], true
}

// BeganIn reports whether a session began in the folder that is at this real path
// now.
func BeganIn(ctx context.Context, a *cli.App, j journal.Journal, session, folder string) (bool, error) {
	body, err := callview.SessionRecord(ctx, j, session)
	if err != nil || body == nil {
		return false, err
	}
	rec, ok := workspaceOf(body)
	return ok && IsFolder(a, folder, rec), nil
}

// SessionOfID returns the record of the session of a transaction or a call. It
// returns nil for an unknown ID.
func SessionOfID(ctx context.Context, j journal.Journal, id string) (*record.Session, error) {
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
	return callview.SessionRecord(ctx, j, t.Session)
}

// Principal describes the owner of a session, from the session's record.
type Principal struct {
	ID     string
	Client *perm.ClientFacts // client of the session; nil: the record names none
	roots  []string          // NAME=DIR, as recorded
}

// PrincipalOf reads the principal of a session.
func PrincipalOf(ctx context.Context, j journal.Journal, session string) (who Principal, err error) {
	q := journal.Query{Session: session, Kinds: []record.Kind{record.KindSession}, Limit: 1}
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
