package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/internal/sparse"
)

// copyKnown shows copies of the roots that are known to need one instead of an
// overlay.
func (h *runHandle) copyKnown(ctx context.Context, spec *sandbox.Spec) error {
	for i := range spec.Roots {
		r := &spec.Roots[i]
		if r.View != sandbox.Overlay || slices.Contains(h.caches, r.Dir) {
			continue
		}
		why, err := "it is to be a copy", error(nil)
		if !h.driver.cfg.UseCopies {
			why, err = h.driver.unfit(ctx, r.Dir)
		}
		if err == nil && why != "" {
			err = h.copyInstead(ctx, spec, sandbox.NoOverlayError{Root: r.Dir, Why: why})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unfit returns why an overlay of a root does not suffice, although it can be
// made: that of an ordinary user cannot take over files of other owners. It
// caches the result.
func (d *Driver) unfit(ctx context.Context, dir string) (why string, err error) {
	d.mu.Lock()
	why, known := d.foreign[dir]
	d.mu.Unlock()
	if known || os.Geteuid() == 0 {
		return why, nil
	}
	name, err := sandbox.Foreign(ctx, dir)
	if err != nil {
		return "", err
	}
	if name != "" {
		why = name + " has another owner"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.foreign[dir] = why
	return why, nil
}

// copyInstead shows a program a copy of a root in its place. If the sandbox
// cannot mount one folder over another, the program starts in the copy.
func (h *runHandle) copyInstead(ctx context.Context, spec *sandbox.Spec, none sandbox.NoOverlayError) error {
	for i := range spec.Roots {
		r := &spec.Roots[i]
		if r.Dir != none.Root {
			continue
		}
		if r.View == sandbox.Direct { // already a copy, with its own path from now on
			bare := r.Upper
			if bare == "" {
				return none
			}
			if rest, inside := strings.CutPrefix(spec.Dir, r.Dir); inside && (rest == "" || rest[0] == '/') {
				spec.Dir = bare + rest
			}
			*r = sandbox.Root{Dir: bare, View: sandbox.Direct}
			return nil
		}
		s, err := h.driver.takeCopy(r.Dir)
		if err != nil {
			return fmt.Errorf("run: the scratch folder %s: %w", h.driver.cfg.Scratch, err)
		}
		if h.copies == nil {
			h.copies = map[string]*rootCopy{}
		}
		h.copies[r.Dir] = s
		if err := s.refresh(ctx, r.Masked, h.since); err != nil {
			return err
		}
		r.View, r.Upper, r.Masked = sandbox.Direct, s.dir, nil
		return nil
	}
	return none
}

// takeCopy takes a copy of a root that no other run uses, or starts one.
func (d *Driver) takeCopy(root string) (*rootCopy, error) {
	if last := d.unusedCopy(root); last != nil {
		return last, nil
	}
	s, err := d.newScratch()
	if err != nil {
		return nil, err
	}
	dir, err := s.part(0)
	return &rootCopy{root: root, dir: dir, scratch: s, partly: true, seen: map[string]entryState{}}, err
}

// unusedCopy removes a copy of a root from the unused ones, or returns nil. It holds
// the lock throughout, because the next returned copy takes the freed slot.
func (d *Driver) unusedCopy(root string) *rootCopy {
	d.mu.Lock()
	defer d.mu.Unlock()
	free := d.copies[root]
	if len(free) == 0 {
		return nil
	}
	last := free[len(free)-1]
	d.copies[root] = free[:len(free)-1]
	return last
}

// place returns the path of the copy.
func (s *rootCopy) place() string { return s.dir }

// returnCopy keeps a copy for the next run.
func (d *Driver) returnCopy(s *rootCopy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.copies[s.root] = append(d.copies[s.root], s)
}

// Close removes what the driver keeps between runs. No run may be in progress.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, all := range d.copies {
		for _, s := range all {
			s.scratch.close()
		}
	}
	clear(d.copies)
	return nil
}

// changes returns the changes of the program in one root.
func (h *runHandle) changes(dir string) ([]sandbox.OverlayEntry, error) {
	if s, ok := h.copies[dir]; ok {
		return s.changes()
	}
	return h.proc.Changes(dir)
}

// whole refuses changes that remove a name that the copy could not contain: the
// program did not see it.
func (s *rootCopy) whole(all []sandbox.OverlayEntry) error {
	for _, w := range all {
		if w.Kind == sandbox.Folder && !w.Replaced {
			continue
		}
		for _, name := range s.long {
			if strings.HasPrefix(name, w.Name+"/") {
				return fmt.Errorf("%w: the program removed or replaced %s, in which it was not shown everything: %s", ctxperm.ErrInvalid, short(w.Name), tooLong)
			}
		}
	}
	return nil
}

// tooLong is the reason why a name is not in a copy.
const tooLong = "a path there is longer than the system takes (4,096 bytes)"

// short returns a name, truncated for messages.
func short(name string) string {
	const most = 100
	if len(name) > most {
		name = name[:most] + "…"
	}
	return strconv.Quote(name)
}

// unshown lists the names that a copy could not contain.
func (h *runHandle) unshown(dir, root string) (out []string) {
	if s, ok := h.copies[dir]; ok {
		for _, name := range s.long {
			out = append(out, short(root+"/"+name)+": it was not shown to the program, since "+tooLong)
		}
	}
	return out
}

// open opens the content of a file in changes.
func (h *runHandle) open(dir, name string) (io.ReadCloser, error) {
	if s, ok := h.copies[dir]; ok {
		return s.open(filepath.FromSlash(name))
	}
	f, err := h.proc.Open(dir, name)
	if err != nil {
		return nil, err
	}
	return sparse.File{File: f}, nil
}
