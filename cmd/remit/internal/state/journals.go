package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// KnownJournal is a journal in the user's state folder.
type KnownJournal struct {
	State     string     `json:"state"`               // state folder
	Workspace string     `json:"workspace,omitempty"` // folder of the newest session; empty: no session names one
	Missing   bool       `json:"missing,omitempty"`   // nothing is at the path of the workspace
	Newest    *time.Time `json:"newest,omitempty"`    // time of the newest record
	Problem   string     `json:"problem,omitempty"`   // why the journal cannot be read
}

// Journals lists the journals in the user's state folder, the one with the
// newest record first.
func Journals(ctx context.Context, a *cli.App) (all []KnownJournal, err error) {
	home, err := Home(a.Getenv)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(home, "remit"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		dir := filepath.Join(home, "remit", e.Name())
		if e.IsDir() && sqlite.Exists(dir) {
			all = append(all, readJournal(ctx, dir))
		}
	}
	slices.SortStableFunc(all, func(a, b KnownJournal) int { return timeOf(b.Newest).Compare(timeOf(a.Newest)) })
	return all, nil
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func readJournal(ctx context.Context, dir string) (k KnownJournal) {
	k.State = dir
	rec, err := workspaceIn(ctx, dir)
	if err == nil {
		k.Newest, err = newestTime(ctx, dir)
	}
	if err != nil {
		k.Problem = err.Error()
		return k
	}
	if k.Workspace = rec.Path; rec.Path != "" {
		_, err := os.Lstat(rec.Path)
		k.Missing = errors.Is(err, os.ErrNotExist)
	}
	return k
}

// newestTime returns the time of the newest record, nil if there is none.
func newestTime(ctx context.Context, dir string) (at *time.Time, err error) {
	j, err := sqlite.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for e, err := range j.Entries(ctx, journal.Query{Newest: true, Limit: 1}) {
		if errors.Is(err, record.ErrDamaged) {
			return nil, nil
		}
		return &e.Header.At, err
	}
	return nil, nil
}
