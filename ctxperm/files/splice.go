package files

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/linemerge"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// maxMergeBytes is the largest file whose versions a revert merges.
const maxMergeBytes = 1 << 20

// splice is the content that a change left, as its difference to the stored
// content before: the same first and last bytes, and other ones between them. A
// merge needs it once another process has changed the file.
type splice struct {
	Head int64          `json:"head"` // bytes before
	Tail int64          `json:"tail"` // bytes after
	Kept effect.BlobRef `json:"kept"` // bytes between them
}

// splicing describes the content of a file after a change by that before. It
// returns nothing if no merge can use it: for content with a zero byte, content
// that is too large, and more than journal.InlineMax bytes between the equal
// ones. Nothing is stored in a step of its own.
func splicing(was, will []byte) (*splice, *journal.Blob) {
	if !linemerge.Text(was) || !linemerge.Text(will) {
		return nil, nil
	}
	most := min(len(was), len(will))
	head := 0
	for head < most && was[head] == will[head] {
		head++
	}
	tail := 0
	for tail < most-head && was[len(was)-1-tail] == will[len(will)-1-tail] {
		tail++
	}
	middle := will[head : len(will)-tail]
	if len(middle) > journal.InlineMax {
		return nil, nil
	}
	middle = bytes.Clone(middle)
	blob := journal.InlineBlob(string(canon.SumBytes(middle)), middle)
	return &splice{Head: int64(head), Tail: int64(tail), Kept: blob.Ref()}, &blob
}

// join returns the content after a change.
func (s *splice) join(was, middle []byte) ([]byte, error) {
	if s.Head < 0 || s.Tail < 0 || s.Head > int64(len(was)) || s.Tail > int64(len(was))-s.Head {
		return nil, errors.New("the content after the change does not fit the content before it")
	}
	return bytes.Join([][]byte{was[:s.Head], middle, was[int64(len(was))-s.Tail:]}, nil), nil
}

// leave records the content that an edit leaves, for a merge. If it cannot be
// read now, a merge will not have it. The merge compares it with its digest.
func (a *fileEdit) leave(ctx context.Context, p ctxperm.Permit, img fileImage, will *record) {
	if a.was.Type != typeFile || img.Type != typeFile || a.was.Content == img.Content || a.blob == nil || img.open == nil || a.blob.Ref().Size > maxMergeBytes || redacted(contexts.PermitCall(p)) {
		return
	}
	was, ok := a.blob.Inline().Get()
	if !ok {
		was, ok = mergeContent(kept(ctx, p, a.blob))
	}
	is := img.data
	if ok && is == nil {
		is, ok = mergeContent(img.open)
	}
	if ok && len(is) <= maxMergeBytes {
		will.Splice, a.after = splicing(was, is)
	}
}

// leave records the contents that were found after the changes of a call, for a
// merge.
func (t *DetectedChanges) leave(call *callstate.Call) {
	if redacted(call) {
		return
	}
	for i := range t.all {
		if blob := t.all[i].leave(); blob != nil {
			t.blobs = append(t.blobs, *blob)
		}
	}
}

func (t *detectedChange) leave() *journal.Blob {
	if t.was.Type != typeFile || t.now.Type != typeFile || t.was.Content == t.now.Content || t.now.info.Size > maxMergeBytes {
		return nil
	}
	was, ok := mergeContent(t.open)
	if !ok {
		return nil
	}
	now, ok := mergeContent(func() (io.ReadCloser, error) { return t.pinned(t.path, t.now) })
	if !ok {
		return nil
	}
	inv, err := readInverse(t.change)
	if err != nil {
		return nil
	}
	var blob *journal.Blob
	if inv.Will.Splice, blob = splicing(was, now); blob == nil {
		return nil
	}
	raw, err := inv.encode()
	if err != nil {
		return nil
	}
	t.change.Inverse, t.change.Blobs = raw, append(t.change.Blobs, blob.Ref())
	return blob
}

// redacted reports whether a value of the call must not be recorded. It can be
// the content of a file.
func redacted(call *callstate.Call) bool {
	if call == nil {
		return true
	}
	hides := call.Config().HasRedactions
	return hides != nil && hides()
}

// mergeContent reads content that a merge can use.
func mergeContent(open func() (io.ReadCloser, error)) (data []byte, ok bool) {
	r, err := open()
	if err != nil {
		return nil, false
	}
	defer func() { _ = r.Close() }()
	data, err = io.ReadAll(io.LimitReader(r, maxMergeBytes+1))
	return data, err == nil && len(data) <= maxMergeBytes
}
