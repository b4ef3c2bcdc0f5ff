package journal

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// naming lists the kinds of record that name content.
var naming = []record.Kind{record.KindSession, record.KindChanged, record.KindState, record.KindReverting}

// blobsIn returns the content that an entry names.
func blobsIn(e record.Entry) ([]effect.BlobRef, error) {
	if e.Erased != "" || !slices.Contains(naming, e.Header.Kind) {
		return nil, nil
	}
	r, err := record.Unseal(e)
	if err != nil {
		return nil, err
	}
	return r.Blobs(), nil
}

// Blobs calls fn for each mention of a blob in an entry after a position, with
// the position of that entry. It returns an error if an entry cannot be read:
// the caller must not treat the blobs that this entry names as unnamed.
func Blobs(ctx context.Context, j Journal, after int64, fn func(pos int64, ref effect.BlobRef) error) error {
	for e, err := range j.Entries(ctx, Query{Kinds: naming, After: after}) {
		if err != nil {
			return err
		}
		refs, err := blobsIn(e)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			if err := fn(e.Pos, ref); err != nil {
				return err
			}
		}
	}
	return nil
}
