package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
)

// rootsLeft are those that calls of what was left may have changed, as NAME=DIR: the roots of the
// session that a call or a transaction belongs to, and where the command line says that they
// are by now. There are none of an id that nothing has.
func (p *workspaceState) rootsLeft(ctx context.Context, j journal.Journal, id string) (roots []string, err error) {
	t, _, err := revert.LoadCall(ctx, j, id)
	if errors.Is(err, journal.ErrNotFound) {
		t, err = revert.Load(ctx, j, id)
	}
	switch {
	case errors.Is(err, journal.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		who, err := principalOf(ctx, j, t.Session)
		if err != nil {
			return nil, err
		}
		roots = who.roots
	}
	for _, r := range p.named() {
		name, dir, err := rootOf(r)
		if err != nil {
			return nil, err
		}
		roots = append(roots, name+"="+dir)
	}
	return roots, nil
}

// foldersOf are the folders of NAME=DIR.
func foldersOf(roots []string) (folders []string) {
	for _, r := range roots {
		_, dir, _ := strings.Cut(r, "=")
		folders = append(folders, dir)
	}
	return folders
}

// principalInfo is who a session belongs to, as its record says.
type principalInfo struct {
	principal string
	client    *perm.ClientFacts // who its tools and results are shown to; nil: nobody said
	roots     []string          // NAME=DIR, as they were
}

func principalOf(ctx context.Context, j journal.Journal, session string) (who principalInfo, err error) {
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
			who.principal = p.ID
		}
		if len(body.Client) > 0 {
			who.client = &perm.ClientFacts{}
			if err := json.Unmarshal(body.Client, who.client); err != nil {
				return who, fmt.Errorf("who session %s is shown to: %w", session, err)
			}
		}
		for _, r := range body.Roots {
			who.roots = append(who.roots, r.Name+"="+r.Path)
		}
	}
	return who, nil
}
