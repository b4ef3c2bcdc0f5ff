package database

import (
	"context"
	"fmt"
	"io"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
)

// The scheme shows the effects of its changes.
var _ diff.Viewer = scheme{}

// View returns the versions before and after a change.
func (s scheme) View(c effect.Change) (before, after diff.ResourceVersion, err error) {
	inv, err := readInverse(context.Background(), c, nil)
	if err != nil {
		return before, after, err
	}
	return inv.resourceVersion(c.Pre, inv.Was), inv.resourceVersion(c.Post, inv.Will), nil
}

func (i inverse) resourceVersion(t effect.Token, image engine.Image) diff.ResourceVersion {
	out := diff.ResourceVersion{Token: t}
	switch {
	case t == effect.Absent:
		return out
	case i.Kept != nil:
		out.Lines = []string{fmt.Sprintf("a row of %s that is too large to be shown, version %s", i.Table.Name, t)}
	default:
		for n, cell := range image {
			out.Lines = append(out.Lines, i.Table.Cols[n]+": "+cellWords(cell))
		}
	}
	out.Type = "row"
	return out
}

// cellWords returns a value in SQL syntax, truncated.
func cellWords(cell string) string {
	if cell == "" {
		return "NULL"
	}
	text := cell[1:]
	const most = 200
	more := ""
	if len(text) > most {
		more = fmt.Sprintf("… (%d bytes)", len(text))
		text = text[:most]
	}
	switch cell[0] {
	case 't':
		return fmt.Sprintf("%q", text) + more
	case 'b', 'x':
		return "base64 " + text + more
	default:
		return text + more
	}
}

// errNoFile: a row is shown by its values.
var errNoFile = fmt.Errorf("a row has no content but its values: %w", diff.ErrContentGone)

// Now returns an error: a change shows a row completely.
func (s scheme) Now(context.Context, string) (diff.ResourceVersion, error) {
	return diff.ResourceVersion{}, errNoFile
}

// Open returns an error, as Now does.
func (s scheme) Open(context.Context, string) (io.ReadCloser, error) { return nil, errNoFile }
