package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// FindIDs returns IDs of transactions and calls that begin with a text, for
// journal.FindIDs: the first ones of the index, and those of the batches that
// are not indexed yet.
func (j *Journal) FindIDs(ctx context.Context, prefix string, most int) ([]string, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	s, err := j.snapshot(ctx)
	if err != nil {
		return nil, j.causeOf(ctx, err)
	}
	var found []string
	for _, b := range s.batches {
		for _, e := range b.entries {
			for _, id := range []string{e.txn, e.call} {
				if id != "" && strings.HasPrefix(id, prefix) {
					found = append(found, id)
				}
			}
		}
	}
	for _, what := range []byte{byTxn, byCall} {
		some, err := j.indexedIDs(ctx, what, prefix, most)
		if err != nil {
			return nil, j.causeOf(ctx, err)
		}
		found = append(found, some...)
	}
	return found, nil
}

// indexedIDs finds each ID by a search of its own: an ID has as many rows as
// batches, and the rows of one transaction can be many.
func (j *Journal) indexedIDs(ctx context.Context, what byte, prefix string, most int) (found []string, err error) {
	stmt, err := j.prepared("SELECT name FROM places WHERE name >= ? AND name < ? ORDER BY name LIMIT 1")
	if err != nil {
		return nil, err
	}
	from, end := placeOf(what, prefix), placeOf(what, prefix+"\U0010ffff")
	for len(found) < most {
		var name string
		err := stmt.QueryRowContext(ctx, from, end).Scan(&name)
		if errors.Is(err, sql.ErrNoRows) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		from, found = name+"\x00", append(found, name[1:])
	}
	return found, nil
}
