package connect

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/internal/disk"
)

// errMoved says that another program changed a file between reading and
// writing.
var errMoved = errors.New("it changed meanwhile")

// private is the mode of files that can hold secrets.
const private = 0o600

// loadedFile is a file as it was read.
type loadedFile struct {
	path string // path as the client knows it
	real string // path after following links
	text []byte
	info fs.FileInfo
}

// loadFile reads a file. It returns nil for a missing file.
func loadFile(path string) (*loadedFile, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if info, linkErr := os.Lstat(path); linkErr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, &FileError{Path: path, Text: "it is a link that leads nowhere"}
		}
		return nil, nil
	}
	if err != nil {
		return nil, &FileError{Path: path, Text: plain(err)}
	}
	info, err := os.Stat(real)
	if err == nil && !info.Mode().IsRegular() {
		return nil, &FileError{Path: path, Text: "it is not a file"}
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(real)
	}
	if err != nil {
		return nil, &FileError{Path: path, Text: plain(err)}
	}
	return &loadedFile{path: path, real: real, text: text, info: info}, nil
}

// content returns the text; nil means that the file is missing.
func (h *loadedFile) content() []byte {
	if h == nil {
		return nil
	}
	return h.text
}

// isLink reports whether the path is a symbolic link.
func (h *loadedFile) isLink() bool {
	info, err := os.Lstat(h.path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// plain returns an error without the path.
func plain(err error) string {
	if bad, ok := errors.AsType[*fs.PathError](err); ok {
		return bad.Err.Error()
	}
	return err.Error()
}

// writable returns why a file must not be replaced.
func (h *loadedFile) writable() error {
	refuse := func(text string) error { return &FileError{Path: h.path, Text: text} }
	if h.info.Mode().Perm()&0o200 == 0 {
		return refuse("it is read-only; to allow the change, make it writable (chmod u+w) and try again")
	}
	root, err := disk.OpenRoot(filepath.Dir(h.real))
	if err != nil {
		return refuse(plain(err))
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Lstat(filepath.Base(h.real)); err == nil && info.Links > 1 {
		return refuse("it has other names (hard links), which would keep the old content: leave it one")
	}
	return nil
}

// swap replaces the text of a file in one step, through links, with the same
// mode, owner and attributes. If the file changed since it was read, swap
// returns errMoved and leaves it unchanged.
func (h *loadedFile) swap(text []byte) error {
	if err := write(h.real, h.text, text, h.info); err != nil {
		return fmt.Errorf("%s: %w", h.path, err)
	}
	return nil
}

// remove deletes a file. If it changed since it was read, remove returns
// errMoved and leaves it unchanged.
func (h *loadedFile) remove() (err error) {
	dir, name := filepath.Split(h.real)
	root, err := disk.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	temp := ".remit-connect-" + rand.Text()
	if err := os.Rename(h.real, filepath.Join(dir, temp)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	is, err := os.ReadFile(filepath.Join(dir, temp))
	if err != nil || !bytes.Equal(is, h.text) {
		return errors.Join(fmt.Errorf("%s: %w", h.path, errMoved), err, os.Rename(filepath.Join(dir, temp), filepath.Join(dir, name)))
	}
	if err := root.Remove(temp); err != nil {
		return err
	}
	return root.SyncDir(".")
}

// write replaces a file. If was is nil, it creates one that only the user can
// read.
func write(path string, was, text []byte, like fs.FileInfo) (err error) {
	root, err := disk.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	perm := fs.FileMode(private)
	if like != nil {
		perm = like.Mode() & disk.PermMask
	}
	name, temp := filepath.Base(path), ".remit-connect-"+rand.Text()
	defer func() {
		if gone := root.Remove(temp); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	if err := fill(root, temp, text, private); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if like != nil {
		if err := sameOwner(filepath.Join(filepath.Dir(path), temp), like); err != nil {
			return fmt.Errorf("nothing was changed, it belongs to another user or group: %w", err)
		}
		if attributes, err := root.Xattrs(name); err == nil {
			for key, value := range attributes {
				_ = root.SetXattr(temp, key, value) // best effort: not all file systems support them
			}
		}
	}
	if err := root.Chmod(temp, perm); err != nil { // last: until then only this user can read it
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := renameInto(root, filepath.Dir(path), temp, name, was); err != nil {
		return err
	}
	return root.SyncDir(".")
}

func fill(root disk.Root, name string, text []byte, perm fs.FileMode) error {
	f, err := root.Create(name, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// renameInto renames a new file to a name. The existing file must contain certain
// bytes, or must be missing.
func renameInto(root disk.Root, dir, temp, name string, was []byte) error {
	if was == nil {
		err := root.RenameNoReplace(temp, name)
		if errors.Is(err, disk.ErrUnsupported) {
			if _, err = root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
				return os.Rename(filepath.Join(dir, temp), filepath.Join(dir, name))
			}
		}
		if errors.Is(err, fs.ErrExist) {
			return errMoved
		}
		return err
	}
	err := root.Exchange(temp, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errMoved
	case errors.Is(err, disk.ErrUnsupported):
		if is, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(is, was) {
			return errors.Join(errMoved, err)
		}
		return os.Rename(filepath.Join(dir, temp), filepath.Join(dir, name))
	case err != nil:
		return err
	}
	if is, err := os.ReadFile(filepath.Join(dir, temp)); err != nil || !bytes.Equal(is, was) {
		return errors.Join(errMoved, err, root.Exchange(temp, name))
	}
	return nil
}

// folder creates a folder and its parents, for the user alone.
func folder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%s: %s", dir, plain(err))
	}
	return nil
}

// lock waits until no other process connects or disconnects: plans depend on
// the records of all clients.
func (p Environment) lock() (unlock func(), err error) {
	if err := folder(p.State); err != nil {
		return nil, err
	}
	return lockFolder(p.State)
}
