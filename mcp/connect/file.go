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

// errMoved: somebody wrote a file between the look at it and the change.
var errMoved = errors.New("it changed meanwhile")

// private are the bits of files that may hold secrets.
const private = 0o600

// loadedFile is a file as it was found.
type loadedFile struct {
	path string // as the client knows it
	real string // where it is, once links are followed
	text []byte
	info fs.FileInfo
}

// look reads a file. One that is not there is nil.
func look(path string) (*loadedFile, error) {
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

// plain is an error without the path, which its reader knows.
func plain(err error) string {
	if bad, ok := errors.AsType[*fs.PathError](err); ok {
		return bad.Err.Error()
	}
	return err.Error()
}

// writable says why a file must not be replaced.
func (h *loadedFile) writable() error {
	refuse := func(text string) error { return &FileError{Path: h.path, Text: text} }
	if h.info.Mode().Perm()&0o200 == 0 {
		return refuse("it is read-only: whoever made it so does not want it changed; make it writable (chmod u+w) and try again")
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

// swap puts a text in the place of another in one step, through links, with the same
// bits, owner and attributes. Where the file is not what it was, errMoved is returned
// and it is left alone.
func (h *loadedFile) swap(text []byte) error {
	if err := write(h.real, h.text, text, h.info); err != nil {
		return fmt.Errorf("%s: %w", h.path, err)
	}
	return nil
}

// write replaces a file, or makes a new one where was is nil, for the user alone.
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
				_ = root.SetXattr(temp, key, value) // a file system that has some takes them
			}
		}
	}
	if err := root.Chmod(temp, perm); err != nil { // last: until then it is this user's alone
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := place(root, filepath.Dir(path), temp, name, was); err != nil {
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

// place gives a new file the name of one that must hold certain bytes, or of none.
func place(root disk.Root, dir, temp, name string, was []byte) error {
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

// folder makes a folder for the user alone, with those above it.
func folder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%s: %s", dir, plain(err))
	}
	return nil
}

// lock waits until nobody else connects or disconnects: what is planned rests on the records of all clients.
func (p Environment) lock() (unlock func(), err error) {
	if err := folder(p.State); err != nil {
		return nil, err
	}
	return lockFolder(p.State)
}
