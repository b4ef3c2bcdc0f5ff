package files

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/perm"
)

var contexts = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()

// MaxFile bounds the bytes of a file that is read or written whole, if
// tool.Limits.MaxFile is not set. Larger files can be read in parts and
// deleted.
const MaxFile = 32 << 20

// Files gives one call access to the files below one root. Its methods are safe
// for concurrent use. Each authorizes exactly the access that it needs.
type Files struct {
	tc   ctxperm.ToolContext
	name string
	site hostRoot

	entries int // bound of the entries that one operation changes
}

// Open returns the files below a named root for the call of tc. It authorizes
// nothing: each operation authorizes its own accesses.
func Open(tc ctxperm.ToolContext, root string) (*Files, error) {
	call := contexts.Call(tc)
	if call == nil {
		return nil, fmt.Errorf("open files: %w", ctxperm.ErrClosed)
	}
	cfg := call.Config()
	r, ok := call.Root(root)
	if !ok {
		return nil, fmt.Errorf("open files: %w: no root %q; there is %s", ctxperm.ErrInvalid, root, rootNames(cfg.Roots))
	}
	s := hostRoot{root: disk.WithoutLinks(r), host: cfg.Recorder.Host(), most: cmp.Or(max(cfg.Files.Bytes, 0), MaxFile)}
	return &Files{tc: tc, name: root, site: s, entries: cmp.Or(max(cfg.Files.Entries, 0), MaxEntries)}, nil
}

func rootNames(roots map[string]disk.Root) string {
	if len(roots) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(roots)), ", ")
}

// Features describes what the root's system and file system support.
type Features struct {
	Exchange bool // a file is replaced, or withdrawn, in one step that loses no bytes of another writer
	Writers  bool // the system detects a program that has a file open for writing
	Xattrs   bool // user.* attributes are kept
	Durable  bool // a name is on stable storage when an operation returns
}

// Features returns the features of this root. If Exchange is false, operations
// can use the weaker order of the package comment.
func (f *Files) Features() Features {
	d := f.site.root.Features()
	//mutant:barrier
	return Features{Exchange: d.Exchange && d.NoReplace, Writers: d.Lease, Xattrs: d.Xattrs, Durable: d.DirSync}
}

// Info describes one file.
type Info struct {
	Name   string      // last element of its path
	Type   string      // file, dir, link or other
	Perm   fs.FileMode // permission bits
	Size   int64       // bytes
	Mtime  time.Time   // UTC
	Target string      // target of a link; only from Stat
}

func infoOf(d disk.Info) Info {
	return Info{Name: d.Name, Type: d.Type.String(), Perm: d.Perm, Size: d.Size, Mtime: d.Mtime}
}

// CheckPath returns nil for a path that operations accept, in any root. For any
// other path it, and every operation, returns ctxperm.ErrInvalid.
func CheckPath(path string) error {
	if path == "." {
		return fmt.Errorf("%w: %q is the root itself, which is neither read nor changed", ctxperm.ErrInvalid, path)
	}
	if disk.CheckPath(path) != nil {
		return fmt.Errorf("%w: %q is no path: one is relative, clean and slash-separated, without .. and NUL, such as src/main.go", ctxperm.ErrInvalid, path)
	}
	return checkReserved(path)
}

func checkReserved(path string) error {
	for _, element := range strings.Split(path, "/") {
		if reserved(element) {
			return fmt.Errorf("%w: %q: names that begin with %s are reserved", ctxperm.ErrInvalid, path, StagePrefix)
		}
	}
	return nil
}

// resource returns the resource of a path that operations accept.
func (f *Files) resource(path string) (string, error) {
	if err := CheckPath(path); err != nil {
		return "", err
	}
	return f.text(path)
}

func (f *Files) text(path string) (string, error) {
	if err := checkReserved(path); err != nil {
		return "", err
	}
	r, err := perm.FileResource(f.name, path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ctxperm.ErrInvalid, err)
	}
	return r.String(), nil
}

// permit authorizes actions on one path, and locks it if one of them changes
// it.
func (f *Files) permit(ctx context.Context, path string, actions ...perm.Action) (ctxperm.Permit, string, error) {
	p, text, err := f.grant(ctx, path, actions...)
	if err != nil {
		return ctxperm.Permit{}, "", err
	}
	if slices.ContainsFunc(actions, func(a perm.Action) bool { return !a.Observes() }) {
		if err := p.LockResource(ctx, text); err != nil {
			p.End()
			return ctxperm.Permit{}, "", err
		}
	}
	return p, text, nil
}

// grant authorizes actions on one path. The operation reads the path only
// afterwards: a denied call must not even learn whether it exists.
func (f *Files) grant(ctx context.Context, path string, actions ...perm.Action) (ctxperm.Permit, string, error) {
	text, err := f.resource(path)
	if err != nil {
		return ctxperm.Permit{}, "", err
	}
	p, err := f.authorize(ctx, text, actions...)
	if err != nil {
		return ctxperm.Permit{}, "", err
	}
	if err := f.site.straight(ctx, path); err != nil {
		p.End()
		return ctxperm.Permit{}, "", refused(err)
	}
	return p, text, nil
}

// hold authorizes many accesses and locks the resources that they change, in
// the order of their names. So calls that lock several cannot deadlock with
// each other.
func (f *Files) hold(ctx context.Context, accesses []perm.ResourceAccess) (ctxperm.Permit, error) {
	p, err := f.authorizeAll(ctx, accesses)
	if err != nil {
		return ctxperm.Permit{}, err
	}
	if err := lockChanged(ctx, p, accesses); err != nil {
		p.End()
		return ctxperm.Permit{}, err
	}
	return p, nil
}

func (f *Files) authorize(ctx context.Context, text string, actions ...perm.Action) (ctxperm.Permit, error) {
	accesses := make([]perm.ResourceAccess, 0, len(actions))
	for _, a := range actions {
		accesses = append(accesses, perm.Access(a, text))
	}
	return f.authorizeAll(ctx, accesses)
}

func (f *Files) authorizeAll(ctx context.Context, accesses []perm.ResourceAccess) (ctxperm.Permit, error) {
	return ctxperm.Authorize(ctx, f.tc, accesses...)
}
