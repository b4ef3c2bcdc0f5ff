package diff

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
)

// ErrContentGone is returned for content that is neither in the world nor kept any more.
var ErrContentGone = errors.New("its content was not kept, and is not there any more")

// ResourceVersion is one version of a resource. The zero Sight is of none.
type ResourceVersion struct {
	Token  effect.Token
	Type   string          // file, dir, link…; empty: it is not there
	Mode   string          // permission bits in octal, where it has some
	Target string          // of a link
	Digest string          // of its content, where it has some
	Attrs  string          // digest of further attributes, empty where there are none
	Lines  []string        // of what is no file, such as a row: what it consists of, in words
	Kept   *effect.BlobRef // its content, where a record names it

	open func(ctx context.Context) (io.ReadCloser, error)
}

// From returns the sight with what reads its content.
func (s ResourceVersion) From(open func(ctx context.Context) (io.ReadCloser, error)) ResourceVersion {
	s.open = open
	return s
}

// Exists reports whether there was something.
func (s ResourceVersion) Exists() bool { return s.Type != "" }

// Open reads the content. It fails with ErrContentGone where that is lost, and reading
// fails with record.ErrDamaged where it is not what it was.
func (s ResourceVersion) Open(ctx context.Context) (io.ReadCloser, error) {
	if s.open == nil {
		return nil, ErrContentGone
	}
	r, err := s.open(ctx)
	if errors.Is(err, journal.ErrNotFound) {
		err = ErrContentGone // erased or pruned
	}
	return r, err
}

// fill finds the content of each version: with the change, in the world, or with a
// later change that displaced it.
func (s Source) fill(ctx context.Context, w revert.Environment, deltas []Delta, since int64) error {
	missing := map[string][]*ResourceVersion{}
	for i := range deltas {
		for _, at := range []*ResourceVersion{&deltas[i].Before, &deltas[i].After} {
			if at.Digest == "" || s.known(ctx, w, deltas[i].Resource, at) {
				continue
			}
			missing[at.Digest] = append(missing[at.Digest], at)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	kinds := []kind.Kind{kind.Changed, kind.Reverting}
	for e, err := range s.Journal.Entries(ctx, journal.Query{Kinds: kinds, After: since - 1}) {
		if err != nil {
			return err
		}
		if e.Erased != "" {
			continue // the content is kept no more, or another record names it
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return err
		}
		for _, ref := range blobs(rec.Body) {
			for _, at := range missing[ref.Digest] {
				s.keptIn(at, ref)
			}
			delete(missing, ref.Digest)
		}
		if len(missing) == 0 {
			return nil
		}
	}
	return nil
}

func (s Source) keptIn(at *ResourceVersion, ref effect.BlobRef) {
	at.Kept = &ref
	at.open = func(ctx context.Context) (io.ReadCloser, error) { return s.Journal.OpenContent(ctx, ref) }
}

// known looks where content is found without a search.
func (s Source) known(ctx context.Context, w revert.Environment, resource string, at *ResourceVersion) bool {
	if at.Kept != nil {
		s.keptIn(at, *at.Kept)
		return true
	}
	for _, scheme := range w.Schemes {
		v, ok := scheme.(Viewer)
		if !ok {
			continue
		}
		now, err := v.Now(ctx, resource)
		if err != nil && !errors.Is(err, ErrContentGone) { // what is there may be it
			at.open = func(context.Context) (io.ReadCloser, error) {
				return nil, fmt.Errorf("the content that is there now cannot be read: %w", err)
			}
		}
		if err != nil || now.Digest != at.Digest || now.Kept == nil {
			continue // it leads elsewhere by now, or cannot be read: there may be a copy
		}
		at.open = func(ctx context.Context) (io.ReadCloser, error) {
			r, err := v.Open(ctx, resource)
			if err != nil {
				return nil, err
			}
			return journal.CheckedContent(*now.Kept, r), nil
		}
		return true
	}
	return false
}

// blobs lists the content that a record names.
func blobs(b record.Body) []effect.BlobRef {
	switch b := b.(type) {
	case *record.Changed:
		return b.Blobs
	case *record.Reverting:
		var out []effect.BlobRef
		for _, step := range b.Steps {
			out = append(out, step.Change.Blobs...)
		}
		return out
	}
	return nil
}
