package database

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// SchemeName stands in each change of this package.
const SchemeName = "database"

// inverse is what a change says about the way back. It is enough to find the
// database again, in any process: where it is, and which one it is.
type inverse struct {
	At    string           `json:"at"` // without secrets
	Mark  engine.TxnMarker `json:"mark"`
	Table engine.Table     `json:"of"`
	Was   engine.Image     `json:"was"`
	Will  engine.Image     `json:"will"`

	Kept *effect.BlobRef `json:"kept,omitempty"` // was and will, where they are large
	Key  []string        `json:"key,omitempty"`  // with kept: cells that name the row
}

// images are the two versions where they are kept beside the record.
type images struct {
	Was  engine.Image `json:"was"`
	Will engine.Image `json:"will"`
}

// inlineMax is how many bytes of images stand in a record.
const inlineMax = 16 << 10

// changes are rows as the journal takes them.
func (w *callTxn) changes(ctx context.Context, rows []engine.Change, m engine.TxnMarker) (out []effect.Change, blobs []journal.Blob, err error) {
	for _, r := range rows {
		inv := inverse{At: w.source.at, Mark: m, Table: r.Ref.Table, Was: r.Was, Will: r.Will}
		c, blob, err := inv.change(ctx, w.name, r.Ref, w.call.Config().Recorder.Journal())
		if err != nil {
			return nil, nil, err
		}
		out = append(out, c)
		if blob != nil {
			blobs = append(blobs, *blob)
		}
	}
	return out, blobs, nil
}

// change writes a change down; large images beside it.
func (i inverse) change(ctx context.Context, name string, ref engine.Ref, keep journal.ContentStore) (c effect.Change, blob *journal.Blob, err error) {
	c = effect.Change{Scheme: SchemeName, Resource: rowResource(name, ref), Kind: kindOf(i.Was, i.Will), Pre: token(i.Table, i.Was), Post: token(i.Table, i.Will)}
	if size(i.Was)+size(i.Will) > inlineMax {
		data, err := canon.Marshal(images{i.Was, i.Will})
		if err != nil {
			return c, nil, err
		}
		kept, err := keep.StoreContent(ctx, bytes.NewReader(data))
		if err != nil {
			return c, nil, err
		}
		at := kept.Ref()
		i.Was, i.Will, i.Kept, i.Key = nil, nil, &at, ref.Key
		c.Blobs, blob = []effect.BlobRef{at}, &kept
	}
	c.Inverse, err = canon.Marshal(i)
	return c, blob, err
}

func size(i engine.Image) (n int) {
	for _, cell := range i {
		n += len(cell)
	}
	return n
}

// readInverse reads what a change says.
func readInverse(ctx context.Context, c effect.Change, keep journal.ContentStore) (i inverse, err error) {
	if err := canon.Decode(c.Inverse, &i); err != nil {
		return i, fmt.Errorf("%s: its change cannot be read: %w", c.Resource, err)
	}
	if err := i.check(); err != nil {
		return inverse{}, fmt.Errorf("%s: its change cannot be read: %w", c.Resource, err)
	}
	if i.Kept == nil || keep == nil {
		return i, nil
	}
	r, err := keep.OpenContent(ctx, *i.Kept)
	if err != nil {
		return i, fmt.Errorf("%s: its rows are not kept any more: %w", c.Resource, err)
	}
	data, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return i, err
	}
	var both images
	if err := json.Unmarshal(data, &both); err != nil {
		return i, err
	}
	i.Was, i.Will = both.Was, both.Will
	if err := i.check(); err != nil {
		return inverse{}, fmt.Errorf("%s: its rows cannot be read: %w", c.Resource, err)
	}
	return i, nil
}

// check refuses images that are not rows of the table: every place of the code takes
// one to have a cell for each column.
func (i inverse) check() error {
	for _, image := range []engine.Image{i.Was, i.Will} {
		if image != nil && len(image) != len(i.Table.Cols) {
			return fmt.Errorf("a row of %d cells in a table of %d columns", len(image), len(i.Table.Cols))
		}
	}
	for _, at := range i.Table.Key {
		if at < 0 || at >= len(i.Table.Cols) {
			return fmt.Errorf("a key at column %d in a table of %d columns", at, len(i.Table.Cols))
		}
	}
	return nil
}

func kindOf(was, will engine.Image) string {
	switch {
	case was == nil:
		return "create"
	case will == nil:
		return "delete"
	default:
		return "write"
	}
}

// token is the version of a row.
func token(t engine.Table, i engine.Image) effect.Token {
	if i == nil {
		return effect.Absent
	}
	return effect.Token(i.Digest(t))
}

// rowResource names a row below its table. Nobody is asked about one row: it is what
// the journal, claims and conflicts speak of.
func rowResource(name string, ref engine.Ref) string {
	r, err := perm.KindDB.Resource(name, ref.Table.Name)
	text := r.String()
	if err != nil { // its accesses were asked for by this name
		text = "db://" + name + "/" + url.PathEscape(ref.Table.Name)
	}
	var key []string
	for _, cell := range ref.Key {
		key = append(key, keyText(cell))
	}
	return text + "/" + strings.Join(key, ",")
}

// keyText is a part of a key as SQL would write it, and as a path can have it. A
// long one is its digest.
func keyText(cell string) string {
	if cell == "" {
		return "NULL"
	}
	text := cell[1:]
	switch cell[0] {
	case 't':
		text = "'" + text + "'"
	case 'r':
		if !strings.ContainsAny(text, ".eIN") {
			text += ".0"
		}
	case 'b', 'x':
		text = string(cell[0]) + "'" + text + "'"
	}
	if len(text) > 200 {
		return "'" + strings.TrimPrefix(string(canon.SumBytes([]byte(cell))), "sha256:") + "'"
	}
	return strings.ReplaceAll(escape(text), "%27", "'")
}

// escape leaves letters, digits and -._~ plain.
func escape(text string) string {
	return strings.NewReplacer("+", "%20", "%2E", ".").Replace(url.QueryEscape(text))
}
