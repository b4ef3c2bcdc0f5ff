package reverttest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/simdisk"
)

// folder is the path of the simulated disk.
const folder = "/reverttest/workspace"

// workspace is the simulated disk of a TestEnv; nil: there is none.
type workspace struct{ disk *simdisk.Disk }

func newWorkspace(files map[string]string) (*workspace, error) {
	if files == nil {
		return nil, nil
	}
	w := &workspace{simdisk.New()}
	r := w.disk.Root()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := write(r, name, files[name]); err != nil {
			return nil, fmt.Errorf("reverttest: the world's file %q: %w", name, err)
		}
	}
	return w, errors.Join(r.SyncAll(), r.Close())
}

// write creates or replaces a file, with its missing directories. A name that
// ends in a slash is a directory.
func write(r disk.Root, name, content string) error {
	dir, file := path.Split(name)
	made := ""
	for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if made = path.Join(made, part); made == "" {
			continue
		}
		if _, err := r.Lstat(made); err == nil {
			continue
		}
		if err := r.Mkdir(made, 0o755); err != nil {
			return err
		}
	}
	if file == "" {
		return nil
	}
	f, err := r.Create(name, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, content)
	return errors.Join(err, f.Sync(), f.Close())
}

func (w *workspace) clone() *workspace {
	if w == nil {
		return nil
	}
	return &workspace{w.disk.Clone()}
}

// open opens the simulated disk at its path, and any other folder on the real
// one.
func (w *workspace) open(dir string) (disk.Root, error) {
	if here, err := filepath.Abs(folder); w != nil && err == nil && dir == here {
		return w.disk.Root(), nil
	}
	return disk.OpenRoot(dir)
}

func (w *workspace) pending() bool { return w != nil && len(w.disk.Pending()) > 0 }

// cut is a power failure: variant 0 loses everything unsynced, the others a
// part of it.
func (w *workspace) cut(variant, seed uint64) {
	pending := w.disk.Pending()
	keep, half := make([]bool, len(pending)), -1
	random := rand.New(rand.NewPCG(seed, variant))
	for i, o := range pending {
		keep[i] = variant > 0 && random.Uint64()%3 > 0
		for _, n := range o.Needs {
			keep[i] = keep[i] && keep[n]
		}
	}
	if last := len(keep) - 1; variant == 2 && last >= 0 && keep[last] && pending[last].Content {
		half = last
	}
	w.disk.Cut(keep, half)
}

// into adds the files to a snapshot.
func (w *workspace) into(s *snapshot) {
	if w == nil {
		return
	}
	for name, f := range w.disk.Files() {
		is := fmt.Sprintf("%v %v %q", f.Type, f.Perm, f.Content)
		if len(f.Attributes) > 0 {
			is += fmt.Sprint(f.Attributes)
		}
		s.is["file "+name], s.exact["file "+name] = is, is
		if f.Type == disk.TypeFile {
			s.exact["file "+name] += f.Mtime.Format(" (15:04:05.000000)")
		}
	}
}

// What another actor does to files.
const (
	writes  = "writes"
	adds    = "adds"
	removes = "removes"
)

// intrude does it to each name, if possible.
func (w *workspace) intrude(does string, names []string) error {
	r := w.disk.Root()
	for i, name := range names {
		is, there := w.disk.Files()[name]
		theirs := fmt.Sprintf("somebody else's %d", i)
		var err error
		switch {
		case does == adds && there && is.Type == disk.TypeDir:
			err = write(r, name+"/theirs.txt", theirs)
		case does == writes && !there && !w.below(name):
			err = write(r, name, theirs)
		case does == writes && there && is.Type != disk.TypeDir:
			if err = r.Remove(name); err == nil {
				err = write(r, name, theirs)
			}
		case does == removes && there && is.Type != disk.TypeDir:
			err = r.Remove(name)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(r.SyncAll(), r.Close())
}

// below reports whether a name leads through a file that is not a directory.
func (w *workspace) below(name string) bool {
	files := w.disk.Files()
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if is, there := files[dir]; there && is.Type != disk.TypeDir {
			return true
		}
	}
	return false
}
