package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
)

// index remembers for each directory of a root which of its names are masked, and
// which directories are in it, so that another search only has to look at directories
// that were changed since. It is safe for concurrent use.
type index struct {
	mu   sync.Mutex // never held across a wait
	dirs map[string]listing
}

type listing struct {
	inode  uint64
	device uint64
	mtime  time.Time
	ctime  time.Time
	hidden []string
	below  []string
	shows  bool // it holds what may be seen and is no directory
}

// settled is how old a directory's last change must be for its listing to be kept:
// two changes within one tick of a file system's clock bear the same time.
const settled = 2 * time.Second

// mostHidden is how long a path may be for something to be hidden there: the system takes 4,096
// bytes, and what the sandbox puts before it needs some.
const mostHidden = 3 << 10

// most is how many directories are remembered for one root.
const most = 1 << 20

// indexOf finds the index of a root for some masks; nil where the names depend on more
// than that.
func (d *Driver) indexOf(root disk.Root, masks []perm.Mask, all bool) *index {
	if !all {
		return nil
	}
	var key strings.Builder
	_, _ = fmt.Fprint(&key, root.Identity())
	for _, m := range masks {
		key.WriteByte(' ')
		key.WriteString(m.String())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i, ok := d.seen[key.String()]
	if !ok {
		const roots = 64 // of one driver; more are searched anew
		if len(d.seen) >= roots {
			clear(d.seen)
		}
		i = &index{dirs: map[string]listing{}}
		d.seen[key.String()] = i
	}
	return i
}

func (i *index) get(dir string, info disk.Info) (listing, bool) {
	if i == nil {
		return listing{}, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	l, ok := i.dirs[dir]
	return l, ok && l.inode == info.Inode && l.device == info.Device && l.mtime.Equal(info.Mtime) && l.ctime.Equal(info.Ctime)
}

func (i *index) put(dir string, l listing, now time.Time) {
	if i == nil || now.Sub(l.mtime) < settled || now.Sub(l.ctime) < settled || l.ctime.IsZero() {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.dirs) >= most {
		clear(i.dirs)
	}
	i.dirs[dir] = l
}

// search finds what has to be hidden.
type search struct {
	root  disk.Root
	name  string
	masks []perm.Mask
	may   func(perm.Resource) bool // nil: everything may be read
	index *index
	now   time.Time
}

// look lists what has to be hidden below a directory, and says whether anything in it
// may be seen. A directory that may not is shown all the same where something below it
// may.
func (s *search) look(ctx context.Context, dir string) (shows bool, hidden []string, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, nil, err
	}
	l, err := s.list(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, disk.ErrType) || errors.Is(err, fs.ErrPermission) {
			return false, nil, nil // it is gone by now, or nobody can look
		}
		return false, nil, err
	}
	shows, hidden = l.shows, slices.Clone(l.hidden)
	for _, sub := range l.below {
		if s.secretive(sub) {
			hidden = append(hidden, sub)
			continue
		}
		some, in, err := s.look(ctx, sub)
		if errors.Is(err, syscall.ENAMETOOLONG) && len(sub) <= mostHidden {
			hidden = append(hidden, sub) // nobody can tell what is masked in it
			continue
		}
		if err != nil {
			return false, nil, err
		}
		if !some && s.may != nil && !s.visible(sub) {
			hidden = append(hidden, sub)
			continue
		}
		shows, hidden = true, append(hidden, in...)
	}
	return shows, hidden, nil
}

func (s *search) visible(name string) bool {
	r, err := perm.FileResource(s.name, name)
	return err == nil && s.may(r)
}

// peek describes a directory in one step where that can be: each one of a tree is looked at
// before every run.
func (s *search) peek(dir string) (disk.Info, error) {
	if r, ok := s.root.(interface {
		Peek(name string) (disk.Info, error)
	}); ok {
		return r.Peek(dir)
	}
	return s.root.Lstat(dir)
}

// list reads one directory, or remembers it.
func (s *search) list(dir string) (listing, error) {
	if info, err := s.peek(dir); err == nil {
		if l, ok := s.index.get(dir, info); ok {
			return l, nil
		}
	}
	info, err := s.root.Lstat(dir)
	if err != nil {
		return listing{}, err
	}
	found, err := s.root.ReadDir(dir)
	if err != nil {
		return listing{}, err
	}
	l := listing{inode: info.Inode, device: info.Device, mtime: info.Mtime, ctime: info.Ctime}
	for _, e := range found {
		name := path.Join(dir, e.Name)
		r, err := perm.FileResource(s.name, name)
		if err != nil { // too long a name for a rule is one that no rule could allow
			l.hidden = append(l.hidden, name)
			continue
		}
		switch {
		case s.masked(r):
			l.hidden = append(l.hidden, name)
		case e.Type == disk.TypeDir:
			l.below = append(l.below, name)
		case s.may != nil && !s.may(r):
			l.hidden = append(l.hidden, name)
		default:
			l.shows = true
		}
	}
	s.index.put(dir, l, s.now)
	return l, nil
}

// masked reports whether a name is masked, in its own spelling or in lower case: masks
// name files such as .env, and .ENV is no less of a secret.
func (s *search) masked(r perm.Resource) bool {
	spellings := []perm.Resource{r}
	if small := strings.ToLower(r.Path()); small != r.Path() {
		if lower, err := perm.FileResource(s.name, small); err == nil {
			spellings = append(spellings, lower)
		}
	}
	return slices.ContainsFunc(s.masks, func(m perm.Mask) bool { return m.Matches(spellings...) })
}
