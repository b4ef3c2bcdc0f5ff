package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	gone, err := s.renewAll(ctx, &r, l, names)
	err = errors.Join(err, r.settle())
	for name, t := range r.next {
		if old, known := s.seen[name]; !known || old != t {
			s.logged[name] = true
		}
		s.seen[name] = t
		setTo(s.fresh, name, t.fresh)
	}
	for _, name := range gone {
		if _, known := s.seen[name]; known {
			s.logged[name] = true
		}
		delete(s.seen, name)
		delete(s.fresh, name)
		delete(s.linked, name)
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

// renewAll updates names, which are sorted, and returns those without a copy.
func (s *snapshotStore) renewAll(ctx context.Context, r *copyRefresh, l lookedAt, names []string) (gone []string, err error) {
	done := 0
	for some := range slices.Chunk(names, progressStep) {
		packed := s.packNames(l, some)
		for _, name := range some {
			if err := context.Cause(ctx); err != nil {
				return gone, err
			}
			there, err := s.renewOne(r, l, name, packed)
			if err != nil {
				return gone, err
			}
			if !there {
				gone = append(gone, name)
			}
		}
		if done += len(some); s.progress != nil {
			s.progress(done, len(names))
		}
	}
	return gone, nil
}

func setTo(set map[string]bool, name string, is bool) {
	if is {
		set[name] = true
	} else {
		delete(set, name)
	}
}

// renewOne updates one name. There is false for a name without a copy.
func (s *snapshotStore) renewOne(r *copyRefresh, l lookedAt, name string, packed map[string]packName) (there bool, err error) {
	old, known := s.seen[name]
	if known {
		r.bulk.sub(old.root)
	}
	if p, ok := packed[name]; ok {
		return true, s.usePack(r, name, p)
	}
	if _, touched := s.dirty[name]; touched && known && !old.root.folder() {
		old.fresh = true // there was an event, whatever the times say
		s.seen[name] = old
	}
	is, raw, err := stampOf(filepath.Join(s.root, name))
	if err == nil && !l.ours(name) && kept(is) {
		if err := os.MkdirAll(filepath.Join(s.dir, path.Dir(name)), 0o700); err != nil { // folders in a pack have none here
			return false, err
		}
		t, err := r.alike(name)
		if err == nil && is.folder() && unlistable(filepath.Join(s.root, name)) {
			t.shut = true
		}
		if err == nil {
			if is.folder() && (!known || old.packed()) {
				r.copied = append(r.copied, name)
			}
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
	return false, s.dropFile(name, false)
}

// usePack takes over an entry of the pack.
func (s *snapshotStore) usePack(r *copyRefresh, name string, p packName) error {
	if err := r.bulk.add(p.t.root, r.most); err != nil {
		return err
	}
	t, err := s.addToPack(p)
	if err != nil {
		return err
	}
	if !p.same {
		t.fresh = !time.Unix(t.root.ctime.Unix()).Before(r.since)
	}
	old, known := s.seen[name]
	if s.strays[name] || known && (!old.packed() || old.root.folder() != t.root.folder()) {
		if err := s.dropFile(name, t.root.folder()); err != nil {
			return err
		}
	}
	r.next[name] = t
	setTo(s.linked, name, p.links > 1)
	return nil
}

// dropFile removes a name from the tree of the copy, with all below it. A folder
// can stay, since names below it can have files there.
func (s *snapshotStore) dropFile(name string, folderStays bool) error {
	at := filepath.Join(s.dir, name)
	if is, _, err := stampOf(at); err == nil && folderStays && is.folder() {
		return chmod(at, 0o700)
	}
	err := sandbox.Discard(at)
	if errors.Is(err, syscall.ENOTDIR) {
		err = nil // below a file that replaced a folder
	}
	return err
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
	s.strays = map[string]bool{}
	for _, d := range scan.differ {
		if old := s.seen[d.name]; !old.packed() || !d.is.folder() || !old.root.folder() {
			wrong = append(wrong, d.name)
			s.strays[d.name] = true
		}
	}
	for name, t := range s.seen {
		switch {
		case t.packed() && t.at-1+t.copy.size > s.pack.size:
			t.fresh = true
			s.seen[name] = t
			wrong = append(wrong, name)
		case !t.packed() && !there[name]:
			wrong = append(wrong, name)
		}
	}
	return wrong, nil
}
