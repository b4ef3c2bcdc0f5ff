package journal

import (
	"context"
	"slices"
	"strings"
)

// FindIDs returns the first IDs of transactions and calls that begin with a
// text, sorted, at most as many as most. If a journal has no index of IDs,
// FindIDs reads all of it.
func FindIDs(ctx context.Context, j Journal, prefix string, most int) (found []string, err error) {
	if f, ok := j.(interface {
		FindIDs(ctx context.Context, prefix string, most int) ([]string, error)
	}); ok {
		found, err = f.FindIDs(ctx, prefix, most)
	} else {
		found, err = scanIDs(ctx, j, prefix)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), most)], err
}

func scanIDs(ctx context.Context, j Journal, prefix string) (found []string, err error) {
	for e, err := range j.Entries(ctx, Query{}) {
		if err != nil && e.Pos == 0 {
			return nil, err
		}
		for _, id := range []string{e.Header.Txn, e.Header.Call} {
			if id != "" && strings.HasPrefix(id, prefix) {
				found = append(found, id)
			}
		}
	}
	return found, nil
}
