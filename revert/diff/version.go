package diff

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ErrContentGone is returned for content that neither the resource nor the
// journal has any more.
var ErrContentGone = errors.New("the content was not stored, and is gone")

// ResourceVersion is one version of a resource. The zero ResourceVersion means
// that the resource does not exist.
type ResourceVersion struct {
	Token  effect.Token
	Type   string          // file, dir, link…; empty: it does not exist
	Mode   string          // permission bits in octal, if it has any
	Target string          // target of a link
	Digest string          // digest of its content, if it has any
	Attrs  string          // digest of further attributes; empty: none
	Lines  []string        // for a resource that is not a file, such as a row: its parts, in words
	Kept   *effect.BlobRef // its content, if a record names it

	open func(ctx context.Context) (io.ReadCloser, error)
}

// From returns the version with a function that opens its content.
func (s ResourceVersion) From(open func(ctx context.Context) (io.ReadCloser, error)) ResourceVersion {
	s.open = open
	return s
}

// Exists reports whether the resource existed.
func (s ResourceVersion) Exists() bool { return s.Type != "" }

// Open opens the content. It returns ErrContentGone for lost content. Reading
// fails with record.ErrDamaged if the bytes are not the recorded ones.
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

// fill finds the content of each version: with the change, in the resource, or
// with a later change that displaced it.
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
	kinds := []record.Kind{record.KindChanged, record.KindReverting}
	for e, err := range s.Journal.Entries(ctx, journal.Query{Kinds: kinds, After: since - 1}) {
		if err != nil {
			return err
		}
		if e.Erased != "" {
			continue // the content is gone, or another record names it
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

// known finds content without a search.
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
		if err != nil && !errors.Is(err, ErrContentGone) { // the current content may be it
			at.open = func(context.Context) (io.ReadCloser, error) {
				return nil, fmt.Errorf("the content that is there now cannot be read: %w", err)
			}
		}
		if err != nil || now.Digest != at.Digest || now.Kept == nil {
			continue // it changed, or cannot be read: there may be a copy
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

// blobs returns the content that a record names.
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
