//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// While the sandbox is built, the host's file system is at host, and what will be
// the program's is at inside. Both lie on a file system in memory that nobody
// else sees.
const (
	host   = "/host"
	inside = "/inside"
	layers = "/layers" // upper folders in memory, and what hides masked names
)

// build makes what the program will see and moves into it.
func (s *stage) build() error {
	if s.leaveOut("mounts") {
		return nil
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a place to build", s.ground},
		{"/tmp", s.scratch},
		{"the system's programs", s.system},
		{"/proc", s.proc},
		{"/dev", s.dev},
		{"the roots", s.roots},
		{"moving in", s.enter},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("sandbox: %s: %w", step.what, err)
		}
	}
	return nil
}

// ground makes the file system in memory and moves the host's below it.
func (s *stage) ground() error {
	// Nothing that is mounted here may show outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := s.memory("/tmp", "0755"); err != nil {
		return err
	}
	for _, dir := range []string{host, inside, layers} {
		if err := os.Mkdir("/tmp"+dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot("/tmp", "/tmp"+host); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return s.memory(inside, "0755")
}

// memory mounts an empty file system in memory.
func (s *stage) memory(at, mode string) error {
	options := "mode=" + mode + ",size=" + strconv.FormatInt(s.Limits.Scratch, 10)
	return unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// system shows what a program needs to run, read-only, where it is.
func (s *stage) system() error {
	for _, path := range stringsOf(s.System) {
		info, err := os.Lstat(host + path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			err = copyLink(path)
		case info.Mode().IsRegular() && info.Size() < 1<<20:
			err = copyFile(path) // a fraction of what a mount costs
		default:
			err = bind(path, info.IsDir(), unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func copyLink(path string) error {
	target, err := os.Readlink(host + path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(inside+path), 0o755)
	}
	if err != nil {
		return err
	}
	return os.Symlink(target, inside+path)
}

func copyFile(path string) error {
	content, err := os.ReadFile(host + path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(inside+path), 0o755)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(inside+path, content, 0o644) //nolint:gosec // for every program there
}

// bind shows a folder or file of the host at its own path.
func bind(path string, dir bool, attrs uint64) error {
	if err := mountPoint(inside+path, dir); err != nil {
		return err
	}
	if err := unix.Mount(host+path, inside+path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if attrs == 0 {
		return nil
	}
	return unix.MountSetattr(unix.AT_FDCWD, inside+path, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attrs})
}

func mountPoint(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// proc shows the sandbox's own processes, read-only: as the host's root user a
// program could else write the kernel's settings, capabilities or not.
func (s *stage) proc() error {
	if err := os.Mkdir(inside+"/proc", 0o555); err != nil {
		return err
	}
	if err := unix.Mount("proc", inside+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	// The limit of RLIMIT_NPROC does not hold for the root user. The namespace's
	// own limit does, where the kernel has one (since Linux 6.14).
	most := strconv.Itoa(max(s.Limits.Processes, 301)) // the least that the kernel takes
	if err := os.WriteFile(inside+"/proc/sys/kernel/pid_max", []byte(most), 0); err != nil && os.Getuid() == 0 {
		s.lack("limit of processes", err)
	}
	return unix.MountSetattr(unix.AT_FDCWD, inside+"/proc", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// devices are the device nodes that a program sees: none has a memory.
func devices() []string { return []string{"null", "zero", "full", "random", "urandom"} }

func (s *stage) dev() error {
	for _, name := range devices() {
		if err := bind("/dev/"+name, false, 0); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, target := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+target, inside+"/dev/"+name); err != nil {
			return err
		}
	}
	if err := os.Mkdir(inside+"/dev/shm", 0o755); err != nil {
		return err
	}
	return s.memory(inside+"/dev/shm", "1777")
}

func (s *stage) scratch() error {
	for _, dir := range []string{"/tmp", "/var/tmp", "/run"} {
		if err := os.MkdirAll(inside+dir, 0o755); err != nil {
			return err
		}
	}
	if err := s.memory(inside+"/tmp", "1777"); err != nil {
		return err
	}
	return s.memory(inside+"/var/tmp", "1777")
}

// enter makes inside the only file system that there is.
func (s *stage) enter() error {
	if err := os.Chdir(inside); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// roots shows each granted root.
func (s *stage) roots() error {
	for i, r := range s.Roots {
		if err := s.root(i, r); err != nil {
			return fmt.Errorf("%s: %w", r.Dir, err)
		}
	}
	return nil
}

func (s *stage) root(i int, r orderRoot) error {
	lower, err := openFolder(string(r.Dir))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(lower) }()
	var is unix.Stat_t
	if err := unix.Fstat(lower, &is); err != nil {
		return err
	}
	if (r.Dev != 0 || r.Ino != 0) && (uint64(is.Dev) != r.Dev || is.Ino != r.Ino) {
		return errors.New("another folder is there than the one that was granted")
	}
	at := inside + string(r.Dir)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if r.View == Direct {
		return s.direct(at, lower)
	}
	return s.overlay(i, r, at, lower, is)
}

func (s *stage) direct(at string, lower int) error {
	if err := unix.Mount(descriptorPath(lower), at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
}

// openFolder opens a folder of the host, following no symbolic link.
func openFolder(path string) (int, error) {
	root, err := unix.Open(host, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(root) }()
	how := unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_IN_ROOT,
	}
	return unix.Openat2(root, strings.TrimPrefix(path, "/"), &how)
}

// descriptorPath is a path for what is open as fd, for calls that take no
// descriptor.
func descriptorPath(fd int) string { return inside + "/proc/self/fd/" + strconv.Itoa(fd) }
