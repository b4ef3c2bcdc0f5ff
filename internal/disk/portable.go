//go:build portable || !linux

package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// portableRoot implements with os.Root what every system supports, and returns
// ErrUnsupported for the rest. If an operation must not follow a final link, it
// checks first and acts then. It follows a link that another process creates in
// between, though never out of the root.
//
// The build tag "portable" selects it on Linux too, for tests.
type portableRoot struct {
	root     *os.Root
	identity Identity
	features Features
	self     Self
}

func openRoot(dir string) (Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	r := &portableRoot{root: root, self: self()}
	if err := r.readFeatures(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return r, nil
}

// readFeatures reads the identity of the root and the features of its platform.
func (r *portableRoot) readFeatures() error {
	self, err := r.root.Open(".")
	if err != nil {
		return err
	}
	defer self.Close()
	info, err := stat(self)
	if err != nil {
		return err
	}
	r.identity = Identity{Device: info.Device, Inode: info.Inode}
	r.features = Features{DirSync: syncsDirs}
	r.features.Exchange, r.features.NoReplace = renames(self)
	return nil
}

func (r *portableRoot) Open(name string) (File, error) {
	file, err := r.openRegular(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &openFile{file: file, name: name}, nil
}

func (r *portableRoot) openRegular(name string) (*os.File, error) {
	if err := CheckPath(name); err != nil {
		return nil, err
	}
	if err := r.expect(name, TypeFile, TypeLink); err != nil {
		return nil, err
	}
	file, err := r.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, rootError(err)
	}
	info, err := stat(file)
	switch {
	case err != nil:
	case info.Type != TypeFile:
		err = ErrType
	case info.Device != r.identity.Device:
		err = ErrEscape
	default:
		return file, nil
	}
	_ = file.Close()
	return nil, err
}

func (r *portableRoot) Create(name string, perm fs.FileMode) (File, error) {
	if err := errors.Join(CheckPath(name), checkPerm(perm)); err != nil {
		return nil, pathError("create", name, err)
	}
	file, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm&0o600)
	if err != nil {
		return nil, pathError("create", name, rootError(err))
	}
	if err := file.Chmod(perm); err != nil {
		_ = file.Close()
		return nil, pathError("create", name, innermost(err))
	}
	return &openFile{file: file, name: name}, nil
}

func (r *portableRoot) Lstat(name string) (Info, error) {
	info, err := r.look(name)
	return info, pathError("lstat", name, err)
}

// look is Lstat without the final error conversion.
func (r *portableRoot) look(name string) (Info, error) {
	if err := checkRootPath(name); err != nil {
		return Info{}, err
	}
	found, err := r.root.Lstat(name)
	if err != nil {
		return Info{}, rootError(err)
	}
	info, err := r.complete(name, found)
	_, info.Name = split(name)
	return info, err
}

// expect is look for an operation that acts on some types only.
func (r *portableRoot) expect(name string, types ...Type) error {
	info, err := r.look(name)
	if err == nil && !slices.Contains(types, info.Type) {
		err = ErrType
	}
	return err
}

func (r *portableRoot) ReadDir(name string) ([]Info, error) {
	entries, err := r.readDir(name)
	return entries, pathError("readdir", name, err)
}

func (r *portableRoot) readDir(name string) ([]Info, error) {
	if err := r.expect(name, TypeDir); err != nil {
		return nil, err
	}
	dir, err := r.root.Open(name)
	if err != nil {
		return nil, rootError(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, innermost(err)
	}
	slices.Sort(names)
	entries := make([]Info, 0, len(names))
	for _, base := range names {
		found, err := r.root.Lstat(path.Join(name, base))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, rootError(err)
		}
		info, err := r.complete(path.Join(name, base), found)
		if err != nil {
			return nil, err
		}
		info.Name = base
		entries = append(entries, info)
	}
	return entries, nil
}

func (r *portableRoot) Readlink(name string) (string, error) {
	if err := r.expect(name, TypeLink); err != nil {
		return "", pathError("readlink", name, err)
	}
	target, err := r.root.Readlink(name)
	return target, pathError("readlink", name, rootError(err))
}

func (r *portableRoot) Symlink(target, name string) error {
	err := errors.Join(CheckPath(name), CheckTarget(target))
	if err == nil {
		err = rootError(r.root.Symlink(target, name))
	}
	return pathError("symlink", name, err)
}

func (r *portableRoot) Link(name, as string) error {
	err := errors.Join(CheckPath(name), CheckPath(as))
	if err == nil {
		var found fs.FileInfo
		if found, err = r.root.Lstat(name); err == nil && !found.Mode().IsRegular() {
			err = ErrType
		}
	}
	if err == nil {
		err = r.root.Link(name, as)
	}
	return linkError("link", name, as, rootError(err))
}

func (r *portableRoot) Mkdir(name string, perm fs.FileMode) error {
	err := errors.Join(CheckPath(name), checkPerm(perm))
	if err == nil {
		err = rootError(r.root.Mkdir(name, perm&0o700))
	}
	if err == nil {
		err = rootError(r.root.Chmod(name, perm))
	}
	return pathError("mkdir", name, err)
}

func (r *portableRoot) Chmod(name string, perm fs.FileMode) error {
	err := checkPerm(perm)
	if err == nil {
		err = r.expect(name, TypeFile, TypeDir)
	}
	if err == nil {
		err = rootError(r.root.Chmod(name, perm))
	}
	return pathError("chmod", name, err)
}

// Chown changes the owner of the name itself.
func (r *portableRoot) Chown(name string, o Owner) error {
	_, err := r.look(name)
	if err == nil && !o.Known {
		err = ErrUnsupported
	}
	if err == nil {
		err = rootError(r.root.Lchown(name, int(o.User), int(o.Group)))
	}
	return pathError("chown", name, err)
}

// SetMtime cannot set the time of a link itself here.
func (r *portableRoot) SetMtime(name string, t time.Time) error {
	info, err := r.look(name)
	if err == nil && info.Type == TypeLink {
		err = ErrUnsupported
	}
	if err == nil {
		err = rootError(r.root.Chtimes(name, time.Time{}, t))
	}
	return pathError("chtimes", name, err)
}

func (r *portableRoot) Xattrs(name string) (map[string][]byte, error) {
	if _, err := r.look(name); err != nil {
		return nil, pathError("getxattr", name, err)
	}
	return map[string][]byte{}, nil
}

func (r *portableRoot) SetXattr(name, key string, _ []byte) error {
	return pathError("setxattr", name, r.noXattr(name, key))
}

func (r *portableRoot) RemoveXattr(name, key string) error {
	return pathError("removexattr", name, r.noXattr(name, key))
}

// noXattr checks every other reason to refuse before it returns ErrUnsupported.
func (r *portableRoot) noXattr(name, key string) error {
	if err := CheckXattr(key); err != nil {
		return err
	}
	if err := r.expect(name, TypeFile, TypeDir); err != nil {
		return err
	}
	return ErrUnsupported
}

func (r *portableRoot) Remove(name string) error {
	err := CheckPath(name)
	if err == nil {
		err = rootError(r.root.Remove(name))
	}
	return pathError("remove", name, err)
}

func (r *portableRoot) Exchange(a, b string) error {
	if inside(a, b) || inside(b, a) {
		return linkError("exchange", a, b, ErrPath)
	}
	return linkError("exchange", a, b, r.between(a, b, exchangeAt))
}

func (r *portableRoot) RenameNoReplace(from, to string) error {
	if inside(to, from) {
		return linkError("rename", from, to, ErrPath)
	}
	return linkError("rename", from, to, r.between(from, to, moveAt))
}

// between opens the parents of two names and runs act on them.
func (r *portableRoot) between(from, to string, act func(fromDir *os.File, fromBase string, toDir *os.File, toBase string) error) error {
	if err := errors.Join(CheckPath(from), CheckPath(to)); err != nil {
		return err
	}
	fromParent, fromBase := split(from)
	toParent, toBase := split(to)
	fromDir, err := r.root.Open(fromParent)
	if err != nil {
		return rootError(err)
	}
	defer fromDir.Close()
	toDir, err := r.root.Open(toParent)
	if err != nil {
		return rootError(err)
	}
	defer toDir.Close()
	return act(fromDir, fromBase, toDir, toBase)
}

func (r *portableRoot) SyncDir(name string) error {
	err := r.expect(name, TypeDir)
	if err == nil && syncsDirs {
		err = r.syncDir(name)
	}
	return pathError("sync", name, err)
}

func (r *portableRoot) syncDir(name string) error {
	dir, err := r.root.Open(name)
	if err != nil {
		return rootError(err)
	}
	defer dir.Close()
	return innermost(dir.Sync())
}

// TryLease cannot detect writers here.
func (r *portableRoot) TryLease(name string) error {
	info, err := r.look(name)
	switch {
	case err != nil:
	case info.Type == TypeFile:
		err = ErrUnsupported
	case info.Type == TypeOther:
		err = ErrType
	}
	return pathError("quiet", name, err)
}

func (r *portableRoot) SyncAll() error { return pathError("sync", ".", ErrUnsupported) }

// Path returns the path at which the root was opened; links in it were followed
// then.
func (r *portableRoot) Path() (string, error) {
	path, err := filepath.Abs(r.root.Name())
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", pathError("path", ".", err)
	}
	return stillThere(path, r.identity)
}

func (r *portableRoot) Identity() Identity { return r.identity }

func (r *portableRoot) Self() Self { return r.self }

func (r *portableRoot) Features() Features { return r.features }

func (r *portableRoot) Close() error { return innermost(r.root.Close()) }

// typeOf reads the type from the standard library's mode bits.
func typeOf(mode fs.FileMode) Type {
	switch mode.Type() {
	case 0:
		return TypeFile
	case fs.ModeDir:
		return TypeDir
	case fs.ModeSymlink:
		return TypeLink
	}
	return TypeOther
}

// stillThere returns a host path if it leads to the directory that id
// identifies.
func stillThere(path string, id Identity) (string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	info, err := stat(dir)
	if err != nil {
		return "", err
	}
	if !id.Is(Identity{Device: info.Device, Inode: info.Inode}) {
		return "", pathError("path", path, ErrEscape)
	}
	return path, nil
}
