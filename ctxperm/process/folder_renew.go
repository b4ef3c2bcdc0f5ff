package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/remit-dev/remit/internal/sandbox"
)

// renew updates some names of the copy from the folder, with the folders above
// them. After an error, the names that it did not reach stay as they were.
func (s *snapshotStore) renew(ctx context.Context, l lookedAt, since time.Time) error {
	r := copyRefresh{rootCopy: &s.rootCopy, since: since, next: map[string]entryState{}, first: map[uint64]string{}, hardLinks: map[uint64]bool{}, apart: true}
	r.bulk = s.bulk
	work := map[string]bool{}
	for name := range l.names {
		for at := name; !work[at]; at = path.Dir(at) {
			work[at] = true
		}
	}
	names := make([]string, 0, len(work))
	for name := range work {
		names = append(names, name)
	}
	slices.Sort(names)
	var gone []string
	err := func() error {
		for i, name := range names {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			there, err := s.renewOne(&r, l, name)
			if err != nil {
				return err
			}
			if !there {
				gone = append(gone, name)
			}
			if s.progress != nil && (i+1)%progressStep == 0 || s.progress != nil && i+1 == len(names) {
				s.progress(i+1, len(names))
			}
		}
		return nil
	}()
	err = errors.Join(err, r.settle())
	for name, t := range r.next {
		s.seen[name] = t
		setTo(s.fresh, name, t.fresh)
		s.logged[name] = true
	}
	for _, name := range gone {
		delete(s.seen, name)
		delete(s.fresh, name)
		delete(s.linked, name)
		s.logged[name] = true
	}
	s.copied, s.bulk = append(s.copied, r.copied...), r.bulk
	if err != nil {
		s.bulk = sizeOf(s.seen)
		return fmt.Errorf("the copy of root %s: %w", s.root, err)
	}
	for _, name := range names {
		delete(s.dirty, name)
	}
	return nil
}

// progressStep is the number of names between two reports.
const progressStep = 500

func setTo(set map[string]bool, name string, is bool) {
	if is {
		set[name] = true
	} else {
		delete(set, name)
	}
}

// renewOne updates one name. There is false for a name without a copy.
func (s *snapshotStore) renewOne(r *copyRefresh, l lookedAt, name string) (there bool, err error) {
	old, known := s.seen[name]
	if known {
		r.bulk.sub(old.root)
	}
	if _, touched := s.dirty[name]; touched && known && !old.root.folder() {
		old.fresh = true // there was an event, whatever the times say
		s.seen[name] = old
	}
	is, raw, err := stampOf(filepath.Join(s.root, name))
	if err == nil && !l.ours(name) && kept(is) {
		t, err := r.alike(name)
		if err == nil && is.folder() && unlistable(filepath.Join(s.root, name)) {
			t.shut = true
		}
		if err == nil {
			r.next[name] = t
			setTo(s.linked, name, raw.Nlink > 1 && !is.folder())
			return true, nil
		}
		if name == "." || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errUnreadable) {
			return false, err
		}
	}
	if err != nil && passing(err, name) != nil {
		return false, err
	}
	if !known && !s.unchecked {
		return false, nil
	}
	err = sandbox.Discard(filepath.Join(s.dir, name))
	if errors.Is(err, syscall.ENOTDIR) {
		err = nil // below a file that replaced a folder
	}
	return false, err
}

// check returns the names whose copy is not as this process or another one left
// it, so that they are copied anew.
func (s *snapshotStore) check(ctx context.Context) ([]string, error) {
	scan := folderScan{dir: s.dir, skip: func(string) bool { return false }, known: func(name string) (fileStamp, bool) {
		old, ok := s.seen[name]
		return old.copy, ok
	}}
	if err := scan.scan(ctx, "."); err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(scan.matched))
	for _, name := range scan.matched {
		there[name] = true
	}
	var wrong []string
	for _, d := range scan.differ {
		wrong = append(wrong, d.name)
	}
	for name := range s.seen {
		if !there[name] {
			wrong = append(wrong, name)
		}
	}
	return wrong, nil
}
