package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// Bounds of the file content that a policy sees.
const (
	mostContent = 256 << 10 // of one file

	mostAllContent = 4 << 20 // of all files of a call
)

// content adds the current file content to the changes of a call, if the engine
// reads content. A file that cannot be read is an error, because a
// postcondition without it would say nothing about the call.
func (l *Pipeline) content(ctx context.Context, s settled, facts []perm.ChangeFacts, changes []effect.Change) error {
	if e, ok := l.engine().(interface{ ReadsContent() bool }); !ok || !e.ReadsContent() || len(facts) == 0 {
		return nil
	}
	masks, err := parseMasks(s.live.Terms().Masks)
	if err != nil {
		return err
	}
	r := contentReader{line: l, masks: masks, left: mostAllContent, seen: map[string]perm.ChangeFacts{}, after: map[string]effect.Token{}}
	for _, c := range changes {
		r.after[c.Resource] = c.Post
	}
	if l.p.ResourceView != nil {
		r.view = l.p.ResourceView(s.exact, changes)
	}
	for i := range facts {
		if err := r.add(ctx, &facts[i]); err != nil {
			return fmt.Errorf("content of %s: %w", facts[i].Resource.Text, err)
		}
	}
	return nil
}

// contentReader reads each file once.
type contentReader struct {
	line  *Pipeline
	view  verify.ResourceView
	masks []perm.Mask
	left  int
	seen  map[string]perm.ChangeFacts
	after map[string]effect.Token // version token after the last change
}

func (r *contentReader) add(ctx context.Context, f *perm.ChangeFacts) error {
	name := f.Resource.Text
	if after := r.after[name]; f.Resource.Kind != string(perm.KindFile) || after == effect.Absent {
		return nil
	}
	found, known := r.seen[name]
	if !known {
		var err error
		if found, err = r.read(ctx, name); err != nil {
			return err
		}
		r.seen[name] = found
	}
	f.Text, f.MediaType, f.Size, f.Cut, f.Binary, f.Masked = found.Text, found.MediaType, found.Size, found.Cut, found.Binary, found.Masked
	return nil
}

func (r *contentReader) read(ctx context.Context, name string) (f perm.ChangeFacts, err error) {
	f.Text = new(string) // always set: a condition on a missing value never holds, even behind not
	if f.Masked, err = r.masked(name); f.Masked || err != nil {
		return f, err
	}
	if r.view == nil {
		return f, errors.New("no root is at hand")
	}
	in, err := r.view.Open(ctx, name)
	if errors.Is(err, disk.ErrType) { // a folder or a link
		f.MediaType = "inode/other"
		return f, nil
	}
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	most := min(mostContent, r.left)
	start, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err != nil {
		return f, err
	}
	if f.Cut = len(start) > most; f.Cut {
		start = start[:most]
	}
	if !f.Cut { // otherwise computing the size would read the whole file
		f.Size = len(start)
	}
	r.left -= len(start)
	r.describe(&f, start)
	return f, r.unchanged(ctx, name)
}

// describe fills in the facts that the start of a file shows.
func (r *contentReader) describe(f *perm.ChangeFacts, start []byte) {
	text := string(start)
	if f.Cut { // in the middle of a character
		for n := 1; n < utf8.UTFMax && n <= len(text) && !utf8.ValidString(text); n++ {
			if short := text[:len(text)-n]; utf8.ValidString(short) {
				text = short
			}
		}
	}
	if f.Binary = !utf8.ValidString(text) || strings.ContainsRune(text, 0); f.Binary {
		f.MediaType = "application/octet-stream"
		return
	}
	text = r.line.known.Scrub(text)
	f.Text, f.MediaType = &text, "text/plain"
}

// unchanged returns an error if the file is not the one that the call left,
// because the content is then another process's.
func (r *contentReader) unchanged(ctx context.Context, name string) error {
	after := r.after[name]
	if after == "" {
		return nil // no version token is known for the file
	}
	now, err := r.view.Version(ctx, name)
	if err == nil && now != string(after) {
		err = errors.New("another process has changed the file since the call")
	}
	return err
}

// masked reports whether a mask hides a file or an enclosing folder.
func (r *contentReader) masked(name string) (bool, error) {
	file, err := perm.ParseResource(name)
	if err != nil {
		return false, err
	}
	for path := file.Path(); path != ""; path = path[:max(strings.LastIndexByte(path, '/'), 0)] {
		var spellings []perm.Resource
		for _, spelling := range []string{path, strings.ToLower(path)} {
			if is, err := perm.FileResource(file.Root(), spelling); err == nil {
				spellings = append(spellings, is)
			}
		}
		if slices.ContainsFunc(r.masks, func(m perm.Mask) bool { return m.Matches(spellings...) }) {
			return true, nil
		}
	}
	return false, nil
}

func parseMasks(texts []string) (masks []perm.Mask, err error) {
	for _, text := range texts {
		m, err := perm.ParseMask(text)
		if err != nil {
			return nil, fmt.Errorf("mask: %w", err)
		}
		masks = append(masks, m)
	}
	return masks, nil
}
