package files

import (
	"context"
	"io"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
)

// The scheme shows the effects of its changes.
var _ diff.Viewer = scheme{}

// View returns the versions before and after a change.
func (s scheme) View(c effect.Change) (before, after diff.ResourceVersion, err error) {
	inv, err := readInverse(c)
	if err != nil {
		return before, after, err
	}
	if before, err = inv.Was.resourceVersion(c.Pre); err == nil {
		after, err = inv.Will.resourceVersion(c.Post)
	}
	return before, after, err
}

func (r *record) resourceVersion(t effect.Token) (diff.ResourceVersion, error) {
	if r == nil {
		return diff.ResourceVersion{Token: t}, nil
	}
	out := diff.ResourceVersion{Token: t, Type: r.Type, Mode: r.Perm, Target: string(r.Target), Digest: r.Content, Kept: r.Kept}
	if len(r.Xattrs) > 0 {
		raw, err := canon.Marshal(r.Xattrs)
		if err != nil {
			return out, err
		}
		out.Attrs = string(canon.SumBytes(raw))
	}
	return out, nil
}

// Now returns the current version. The content that it names is that of the
// file, not of a journal.
func (s scheme) Now(ctx context.Context, resource string) (diff.ResourceVersion, error) {
	where, path, err := s.locate(resource)
	if err != nil {
		return diff.ResourceVersion{}, err
	}
	if err := where.straight(ctx, path); err != nil {
		return diff.ResourceVersion{}, err
	}
	st, err := where.look(ctx, path, hashing)
	if err != nil {
		return diff.ResourceVersion{}, err
	}
	out, err := st.record(nil).resourceVersion(st.Token())
	if err == nil && st.Type == typeFile {
		out.Kept = &effect.BlobRef{Digest: st.Content, Size: st.info.Size}
	}
	return out, err
}

// Open opens the current file.
func (s scheme) Open(ctx context.Context, resource string) (io.ReadCloser, error) {
	return callView{scheme: s, reach: map[string]bool{resource: true}}.Open(ctx, resource)
}
