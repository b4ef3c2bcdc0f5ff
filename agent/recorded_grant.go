package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// inlineGrant is the size in bytes up to which a session record holds its grant
// itself. A larger grant is content that all sessions with the same grant name,
// so that opening a session does not cost more with more tools.
const inlineGrant = 4 << 10

// recordedGrant is the grant of a session as its record holds or names it.
type recordedGrant struct {
	text    []byte        // canonical JSON; nil: content
	content *journal.Blob // nil: text
	of      *tool.Registry
}

// put adds the grant to the record of a session, and returns the content that
// the batch must name.
func (g recordedGrant) put(body *record.Session) []journal.Blob {
	body.Grant, body.GrantContent = g.text, nil
	if g.content == nil {
		return nil
	}
	ref := g.content.Ref()
	body.GrantContent = &ref
	return []journal.Blob{*g.content}
}

// recordGrant prepares a grant for the record of a session.
func (rt *Runtime) recordGrant(ctx context.Context, set perm.Set) (recordedGrant, error) {
	text, err := canon.Marshal(set)
	if err != nil || len(text) <= inlineGrant {
		return recordedGrant{text: text}, err
	}
	// Before the record: a record never names content that a crash can lose.
	content, err := rt.journal.StoreContent(ctx, bytes.NewReader(text))
	return recordedGrant{content: &content}, err
}

// writeSession writes the records that open a session. all is the registry
// whose whole grant the session holds, or nil. The runtime prepares that grant
// once.
func (rt *Runtime) writeSession(ctx context.Context, session string, lines []revert.CallRecord, body *record.Session, set perm.Set, all *tool.Registry) error {
	rec := revert.NewRecorder(rt.journal, rt.services.Host, session)
	if g := rt.wholeGrant.Load(); g != nil && g.of == all {
		err := rec.Write(ctx, revert.Write{Records: lines, Blobs: g.put(body)})
		if !errors.Is(err, journal.ErrNotFound) {
			return err
		}
		// The records that named the content were pruned, and it with them.
	}
	g, err := rt.recordGrant(ctx, set)
	if err != nil {
		return err
	}
	if err := rec.Write(ctx, revert.Write{Records: lines, Blobs: g.put(body)}); err != nil || all == nil {
		return err
	}
	if g.content != nil { // now that a record names it, the next ones need not store it
		stored := journal.StoredBlob(g.content.Ref())
		g.content = &stored
	}
	g.of = all
	rt.wholeGrant.Store(&g)
	return nil
}

// grantOf returns the grant that a session record holds or names, as far as the
// tools of now need it.
func (rt *Runtime) grantOf(ctx context.Context, body *record.Session) (set perm.Set, err error) {
	text := []byte(body.Grant)
	if ref := body.GrantContent; ref != nil {
		content, err := rt.journal.OpenContent(ctx, *ref)
		if err != nil {
			return perm.Set{}, fmt.Errorf("grant: %w", err)
		}
		text, err = io.ReadAll(content)
		if err = errors.Join(err, content.Close()); err != nil {
			return perm.Set{}, fmt.Errorf("grant: %w", err)
		}
	}
	if err := canon.Decode(text, &set); err != nil {
		return perm.Set{}, fmt.Errorf("grant: %w", err)
	}
	have, err := rt.Tools().Grant()
	if err != nil {
		return perm.Set{}, err
	}
	if now, err := canon.Marshal(have); err == nil && bytes.Equal(now, text) {
		return have, nil // shared with other sessions
	}
	return set.Intersect(have), nil
}
