package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
)

// errPromiseFailed says that a probe found a promise broken.
var errPromiseFailed = errors.New("not as promised")

// probe tries one promise of a file system, in a folder of its own.
type probe struct {
	check   string
	promise func(disk.Features) bool
	try     func(r disk.Root, dir string) error
	ok      string // what the promise gives
	weaker  string // what is weaker without it
}

// probes returns the probes. Each can use all names in its folder.
func probes() []probe {
	return []probe{
		{
			"beneath", func(f disk.Features) bool { return f.Beneath }, tryBeneath,
			"a path cannot leave the root", "a path is kept inside the root by looking at each step, and what lies on another mount is refused only afterwards",
		},
		{
			"exchange", func(f disk.Features) bool { return f.Exchange }, tryExchange,
			"files are replaced and restored in one step", "a file is replaced by removing and writing it: a change made in between is lost",
		},
		{
			"noreplace", func(f disk.Features) bool { return f.NoReplace }, tryNoReplace,
			"a new file never takes the place of another", "a file made at the same moment under the same name may be replaced",
		},
		{
			"lease", func(f disk.Features) bool { return f.Lease }, tryLease,
			"a program that has a file open for writing is seen", "a program that keeps a file open for writing is not always seen: what it writes after a change may be lost",
		},
		{
			"xattrs", func(f disk.Features) bool { return f.Xattrs }, tryXattrs,
			"user.* attributes come back with a file", "user.* attributes of a file that is restored are lost, where it has any",
		},
		{
			"dirsync", func(f disk.Features) bool { return f.DirSync }, func(r disk.Root, dir string) error { return r.SyncDir(dir) },
			"names are on stable storage when a call ends", "a name may be lost in a power cut although the call ended; the journal has it all the same",
		},
	}
}

// checkRoot checks a root's file system.
func checkRoot(a *cli.App, where, folder string, tell func(Finding)) {
	kind, is := fileSystem(folder)
	found := Finding{Where: where, Check: "filesystem", Is: Healthy, What: kind}
	if is != Healthy {
		found.Is, found.What = Weaker, kind+": what others do at the same time behind what serves it may not be seen"
		found.Fix = "work in a folder on a disk of this machine"
	}
	tell(found)
	r, err := host.OpenRoot(a.Host, folder)
	if err != nil {
		tell(Finding{Where: where, Check: "open", Is: Failing, What: "cannot be opened: " + cli.PlainError(err), Fix: "give yourself the right to read and enter it: chmod u+rx " + cli.Quote(folder)})
		return
	}
	defer func() { _ = r.Close() }()
	dir := host.NewID(a.Host, files.StagePrefix+"doctor-")
	if err := r.Mkdir(dir, 0o700); err != nil {
		tell(Finding{
			Where: where, Check: "write", Is: Weaker, What: "nothing can be written here, so nothing more was tried: " + cli.PlainError(err),
			Fix: "if calls are to change files here, give yourself the right to: chmod u+w " + cli.Quote(folder),
		})
		return
	}
	for _, p := range probes() {
		tell(p.finding(where, kind, r, dir))
	}
	if err := removeAll(r, dir); err != nil {
		tell(Finding{Where: where, Check: "clean", Is: Failing, What: "what was made to try things is still there: " + err.Error(), Fix: "remove " + cli.Quote(filepath.Join(folder, dir))})
	}
}

// finding runs a probe. A broken promise is a failure, since calls rely on it.
func (p probe) finding(where, kind string, r disk.Root, dir string) Finding {
	err := p.try(r, dir)
	f := Finding{Where: where, Check: p.check, Is: Healthy, What: p.ok}
	switch {
	case err != nil && (p.promise(r.Features()) || errors.Is(err, errPromiseFailed)):
		f.Is, f.What = Failing, fmt.Sprintf("remit relies on it, and it went wrong: %v", err)
		f.Fix = "work on another file system than " + kind + ", and report this: the file system does not do what it says"
	case err != nil || !p.promise(r.Features()):
		f.Is, f.What = Weaker, p.weaker
		f.Fix = "work on Linux, in a folder on ext4, xfs or btrfs"
	}
	return f
}

// tryBeneath makes a link that leads out of the root, and opens a path through
// it.
func tryBeneath(r disk.Root, dir string) error {
	name := dir + "/out"
	if err := r.Symlink("../..", name); err != nil {
		return err
	}
	_, err := r.Lstat(name + "/" + filepath.Base(dir))
	if !errors.Is(err, disk.ErrEscape) {
		return errors.Join(fmt.Errorf("%w: a path went through a link that leads out of the root", errPromiseFailed), err)
	}
	return nil
}

func tryExchange(r disk.Root, dir string) error {
	a, b, err := twoFiles(r, dir, "exchange")
	if err != nil {
		return err
	}
	if err := r.Exchange(a.Name, b.Name); err != nil {
		return err
	}
	now, err := r.Lstat(a.Name)
	if err == nil && now.Inode != b.Inode {
		err = fmt.Errorf("%w: two files that were exchanged are where they were", errPromiseFailed)
	}
	return err
}

func tryNoReplace(r disk.Root, dir string) error {
	a, b, err := twoFiles(r, dir, "rename")
	if err != nil {
		return err
	}
	if err := r.RenameNoReplace(a.Name, b.Name); !errors.Is(err, fs.ErrExist) {
		if errors.Is(err, disk.ErrUnsupported) {
			return err
		}
		return errors.Join(fmt.Errorf("%w: a file was renamed over another", errPromiseFailed), err)
	}
	return r.RenameNoReplace(a.Name, a.Name+"-free")
}

// tryLease takes a lease on a file that is open for writing, then on the same
// file after it was closed.
func tryLease(r disk.Root, dir string) error {
	name := dir + "/lease"
	f, err := r.Create(name, 0o600)
	if err != nil {
		return err
	}
	open := r.TryLease(name)
	if err := f.Close(); err != nil {
		return err
	}
	if open == nil {
		return errors.New("a file that was open for writing looked closed")
	}
	if !errors.Is(open, disk.ErrBusy) {
		return open
	}
	return r.TryLease(name)
}

func tryXattrs(r disk.Root, dir string) error {
	a, _, err := twoFiles(r, dir, "xattr")
	if err != nil {
		return err
	}
	const key, value = "user.remit.doctor", "kept"
	if err := r.SetXattr(a.Name, key, []byte(value)); err != nil {
		return err
	}
	kept, err := r.Xattrs(a.Name)
	if err == nil && string(kept[key]) != value {
		err = fmt.Errorf("%w: an attribute that was set is not there", errPromiseFailed)
	}
	return err
}

// twoFiles makes two files; the names they come with are whole.
func twoFiles(r disk.Root, dir, name string) (a, b disk.Info, err error) {
	for i, info := range []*disk.Info{&a, &b} {
		path := fmt.Sprintf("%s/%s-%d", dir, name, i)
		f, err := r.Create(path, 0o600)
		if err != nil {
			return a, b, err
		}
		*info, err = f.Stat()
		if err = errors.Join(err, f.Close()); err != nil {
			return a, b, err
		}
		info.Name = path
	}
	return a, b, nil
}

func removeAll(r disk.Root, dir string) error {
	entries, err := r.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, r.Remove(dir+"/"+e.Name))
	}
	return errors.Join(err, r.Remove(dir))
}

// nearestExisting returns the folder itself, or its nearest existing parent.
func nearestExisting(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
