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

// index caches the masked names and the subdirectories of each directory of a
// root. So another search reads only directories that have changed since. It is
// safe for concurrent use.
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
	shows  bool // has a visible entry that is not a directory
}

// settled is the minimum age of a directory's last change for caching its
// listing. Two changes within one tick of a file system's clock have the same
// time.
const settled = 2 * time.Second

// mostHidden bounds the length of a path that can be hidden. The system allows
// 4,096 bytes, and the sandbox adds a prefix.
const mostHidden = 3 << 10

// most bounds the cached directories of one root.
const most = 1 << 20

// indexOf returns the index of a root for some masks, or nil if the names
// depend on more than that.
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
		const roots = 64 // per driver; further ones are not cached
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

// search finds the names to hide.
type search struct {
	root  disk.Root
	name  string
	masks []perm.Mask
	may   func(perm.Resource) bool // nil: everything may be read
	index *index
	now   time.Time
}

// look returns the names to hide below a directory, and whether it has a
// visible entry. A directory that may not be seen is shown if an entry below it
// may.
func (s *search) look(ctx context.Context, dir string) (shows bool, hidden []string, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, nil, err
	}
	l, err := s.list(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, disk.ErrType) || errors.Is(err, fs.ErrPermission) {
			return false, nil, nil // gone by now, or unreadable for every user
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
			hidden = append(hidden, sub) // its masked names are unknown
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

// peek describes a directory, in one step if possible, because every run checks
// each directory of a tree.
func (s *search) peek(dir string) (disk.Info, error) {
	if r, ok := s.root.(interface {
		Peek(name string) (disk.Info, error)
	}); ok {
		return r.Peek(dir)
	}
	return s.root.Lstat(dir)
}

// list returns the listing of one directory, read or from the cache.
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
		if err != nil { // a name too long for a rule is one that no rule can allow
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

// masked reports whether a name is masked, in its spelling or in lower case.
// Masks name files such as .env, and .ENV is no less secret.
func (s *search) masked(r perm.Resource) bool {
	spellings := []perm.Resource{r}
	if small := strings.ToLower(r.Path()); small != r.Path() {
		if lower, err := perm.FileResource(s.name, small); err == nil {
			spellings = append(spellings, lower)
		}
	}
	return slices.ContainsFunc(s.masks, func(m perm.Mask) bool { return m.Matches(spellings...) })
}
