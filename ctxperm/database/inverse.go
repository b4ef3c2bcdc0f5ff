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

// schemeName is the scheme of each change of this package.
const schemeName = "database"

// inverse is the stored inverse of a change. It identifies the database, and
// states where it is, so that any process can find it.
type inverse struct {
	At    string           `json:"at"` // location without secrets
	Mark  engine.TxnMarker `json:"mark"`
	Table engine.Table     `json:"of"`
	Was   engine.Image     `json:"was"`
	Will  engine.Image     `json:"will"`

	Kept *effect.BlobRef `json:"kept,omitempty"` // was and will, if they are large
	Key  []string        `json:"key,omitempty"`  // set with Kept: cells of the row's key
}

// images holds the two versions that are stored beside the record.
type images struct {
	Was  engine.Image `json:"was"`
	Will engine.Image `json:"will"`
}

// inlineMax bounds the bytes of images in a record.
const inlineMax = 16 << 10

// changes returns rows in the form of the journal.
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

// change encodes a change, and stores large images beside it.
func (i inverse) change(ctx context.Context, name string, ref engine.Ref, keep journal.ContentStore) (c effect.Change, blob *journal.Blob, err error) {
	c = effect.Change{Scheme: schemeName, Resource: rowResource(name, ref), Kind: kindOf(i.Was, i.Will), Pre: token(i.Table, i.Was), Post: token(i.Table, i.Will)}
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

// readInverse decodes the inverse of a change.
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

// check refuses images that are not rows of the table. All other code relies on
// one cell per column.
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

// token returns the version token of a row.
func token(t engine.Table, i engine.Image) effect.Token {
	if i == nil {
		return effect.Absent
	}
	return effect.Token(i.Digest(t))
}

// rowResource returns the name of a row below its table. No policy decides a
// single row: the journal, claims and conflicts use the name.
func rowResource(name string, ref engine.Ref) string {
	r, err := perm.KindDB.Resource(name, ref.Table.Name)
	text := r.String()
	if err != nil { // its accesses were authorized by this name
		text = "db://" + name + "/" + url.PathEscape(ref.Table.Name)
	}
	var key []string
	for _, cell := range ref.Key {
		key = append(key, keyText(cell))
	}
	return text + "/" + strings.Join(key, ",")
}

// keyText returns a part of a key in SQL syntax, escaped for a path. A long one
// becomes its digest.
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
