//go:build amd64 || arm64

package shim

import (
	"errors"
	"slices"
	"strconv"
	"syscall"
)

// While the sandbox is built, the host's file system is at host, and the
// program's future one at inside. All files in memory lie on one private file
// system with one bound.
const (
	host   = "/host"
	inside = "/inside"
	layers = "/layers" // upper folders in memory, and the layers that hide masked names
	procs  = inside + "/proc"
)

// build creates the program's file system and moves into it.
func (s *sandboxBuild) build() error {
	if !s.Namespaces {
		return s.look()
	}
	if s.leaveOut("mounts") {
		return nil
	}
	// A namespace gives the right to mount. Some systems create namespaces
	// without it.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return refusal{NoNamespaces, "", failedAt("mounting", err)}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a place to build", s.ground},
		{"/tmp", s.scratch},
		{"the system's programs", s.system},
		{"/dev", s.dev},
		{"/proc", s.proc},
		{"the roots", s.roots},
		{"moving in", enter},
	} {
		if err := step.do(); err != nil {
			return failedAt("sandbox: "+step.what, err)
		}
	}
	return nil
}

// ground creates the file system in memory and moves the host's below it.
func (s *sandboxBuild) ground() error {
	at := "/tmp"
	var is syscall.Stat_t
	if syscall.Stat(at, &is) != nil {
		at = "/usr"
	}
	options := "mode=0755,size=" + strconv.FormatUint(s.Limits.Scratch, 10)
	if err := syscall.Mount("tmpfs", at, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return err
	}
	for _, dir := range []string{host, inside, layers} {
		if err := syscall.Mkdir(at+dir, 0o755); err != nil {
			return err
		}
	}
	if err := syscall.PivotRoot(at, at+host); err != nil {
		return err
	}
	if err := syscall.Chdir("/"); err != nil {
		return err
	}
	return syscall.Mount(inside, inside, "", syscall.MS_BIND, "")
}

// system shows the system's files, read-only, at their paths.
func (s *sandboxBuild) system() error {
	var made folders
	for _, path := range s.System {
		var is syscall.Stat_t
		err := syscall.Lstat(host+path, &is)
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err == nil {
			err = made.above(inside + path)
		}
		if err == nil {
			err = show(path, is)
		}
		if err != nil {
			return failedAt(path, err)
		}
	}
	return nil
}

func show(path string, is syscall.Stat_t) error {
	switch kind := is.Mode & syscall.S_IFMT; {
	case kind == syscall.S_IFLNK:
		return copyLink(path)
	case kind == syscall.S_IFREG && is.Size < 1<<20:
		return copyFile(path) // much cheaper than a mount
	default:
		return bind(path, kind == syscall.S_IFDIR, mountAttrRdonly|mountAttrNosuid|mountAttrNodev)
	}
}

func copyLink(path string) error {
	buf := make([]byte, 4096) // no link is longer
	n, err := syscall.Readlink(host+path, buf)
	if err != nil {
		return err
	}
	return syscall.Symlink(string(buf[:n]), inside+path)
}

func copyFile(path string) error {
	from, err := syscall.Open(host+path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(from) }()
	to, err := syscall.Open(inside+path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(to) }()
	buf := make([]byte, 16<<10)
	for {
		n, err := syscall.Read(from, buf)
		if n <= 0 || err != nil {
			return err
		}
		if m, err := syscall.Write(to, buf[:n]); m != n { // memory takes everything or fails
			return errors.Join(errors.New("not written whole"), err)
		}
	}
}

// bind shows a folder or file of the host at its own path.
func bind(path string, dir bool, attrs uint64) error {
	if err := mountPoint(inside+path, dir); err != nil {
		return err
	}
	if err := syscall.Mount(host+path, inside+path, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return err
	}
	return mountSetattr(inside+path, atRecursive, &mountAttr{set: attrs})
}

func mountPoint(path string, dir bool) error {
	if dir {
		return ignore(syscall.EEXIST, syscall.Mkdir(path, 0o755))
	}
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return syscall.Close(fd)
}

func ignore(what syscall.Errno, err error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// folders records which folders were created.
type folders map[string]bool

// above creates the folders above a path.
func (f *folders) above(path string) error {
	if *f == nil {
		*f = folders{}
	}
	for i := len(inside) + 1; i < len(path); i++ {
		if path[i] != '/' || (*f)[path[:i]] {
			continue
		}
		if err := ignore(syscall.EEXIST, syscall.Mkdir(path[:i], 0o755)); err != nil {
			return err
		}
		(*f)[path[:i]] = true
	}
	return nil
}

// proc shows the sandbox's own processes, read-only. Otherwise a program of the
// host's root user could write the kernel's settings, even without
// capabilities. Some containers do not permit it, because it would show what
// their /proc hides.
func (s *sandboxBuild) proc() error {
	if err := syscall.Mkdir(procs, 0o555); err != nil {
		return err
	}
	if err := syscall.Mount("proc", procs, "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		s.lack("proc", failedAt("a /proc of its own cannot be mounted, so there is none", err))
		return nil
	}
	// RLIMIT_NPROC does not apply to the root user. The namespace's own limit
	// does, if the kernel has one (since Linux 6.14).
	if !slices.Contains(s.Without, "limits") {
		if err := writeText(procs+"/sys/kernel/pid_max", strconv.FormatUint(max(s.Limits.Processes, 301), 10)); err != nil && syscall.Getuid() == 0 {
			s.lack("limit of processes", err)
		}
	}
	if s.loopback {
		// No port of it needs a privilege. Without this the low ones do.
		_ = writeText(procs+"/sys/net/ipv4/ip_unprivileged_port_start", "0")
	}
	for _, name := range hidden() {
		if err := hide(procs + "/" + name); err != nil {
			return failedAt(name, err)
		}
	}
	return mountSetattr(procs, 0, &mountAttr{set: mountAttrRdonly})
}

// hidden returns paths in /proc that describe the machine. The root user may
// read all of it as its owner, without any capability.
func hidden() []string {
	return []string{
		"acpi", "asound", "bus", "fs", "interrupts", "iomem", "ioports", "kcore", "keys", "kmsg", "latency_stats", "pagetypeinfo", "sched_debug",
		"scsi", "slabinfo", "sysrq-trigger", "timer_list", "vmallocinfo",
		"sys/kernel/usermodehelper", "sys/net/ipv4/tcp_fastopen_key", "sys/vm/stat_refresh",
	}
}

// hide mounts an empty folder or file over an existing one. It is read-only
// like its source.
func hide(path string) error {
	var is syscall.Stat_t
	if err := syscall.Lstat(path, &is); err != nil {
		return ignore(syscall.ENOENT, err)
	}
	from := inside + "/dev/null"
	if is.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		from = inside + "/run"
	}
	return syscall.Mount(from, path, "", syscall.MS_BIND, "")
}

func writeText(path, text string) error {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }()
	_, err = syscall.Write(fd, []byte(text))
	return err
}

// devices returns the device nodes that a program sees: none stores data. They
// are the host's, on a read-only mount. They can be written, but their bits and
// times cannot be changed, which the root user, as their owner, could do
// otherwise.
func devices() []string { return []string{"null", "zero", "full", "random", "urandom"} }

func (s *sandboxBuild) dev() error {
	if err := syscall.Mkdir(inside+"/dev", 0o755); err != nil {
		return err
	}
	for _, name := range devices() {
		if err := bind("/dev/"+name, false, mountAttrRdonly|mountAttrNosuid|mountAttrNoexec); err != nil {
			return failedAt(name, err)
		}
	}
	if s.Terminal > 0 {
		if err := bind("/dev/tty", false, mountAttrRdonly|mountAttrNosuid|mountAttrNoexec); err != nil {
			return failedAt("tty", err)
		}
	}
	for _, link := range [][2]string{{"fd", ""}, {"stdin", "/0"}, {"stdout", "/1"}, {"stderr", "/2"}} {
		if err := syscall.Symlink("/proc/self/fd"+link[1], inside+"/dev/"+link[0]); err != nil {
			return err
		}
	}
	if err := s.terminals(); err != nil {
		return failedAt("pts", err)
	}
	return open("/dev/shm")
}

// terminals creates a private instance of pseudo-terminals. Some containers do
// not permit that; programs that need a terminal then fail.
func (s *sandboxBuild) terminals() error {
	at := inside + "/dev/pts"
	if err := syscall.Mkdir(at, 0o755); err != nil {
		return err
	}
	const options = "newinstance,ptmxmode=0666,mode=0620"
	for _, group := range []string{",gid=5", ""} { // the group of terminals, if the namespace has it
		if syscall.Mount("devpts", at, "devpts", syscall.MS_NOSUID|syscall.MS_NOEXEC, options+group) == nil {
			s.pts = true
			break
		}
	}
	return syscall.Symlink("pts/ptmx", inside+"/dev/ptmx")
}

// scratch creates the folders that all users may write. The other files in
// memory are read-only.
func (s *sandboxBuild) scratch() error {
	for _, dir := range []string{"/run", "/var"} {
		if err := syscall.Mkdir(inside+dir, 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(open("/tmp"), open("/var/tmp"), s.home()); err != nil {
		return err
	}
	if err := syscall.Mount(inside+"/run", inside+"/run", "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	return mountSetattr(inside+"/run", 0, &mountAttr{set: mountAttrRdonly})
}

// home creates the folder for files that programs keep in the user's home. What
// the system shows there is mounted into it later.
func (s *sandboxBuild) home() error {
	if s.Home == "" {
		return nil
	}
	var made folders
	if err := made.above(inside + s.Home); err != nil {
		return err
	}
	return open(s.Home)
}

// open creates an empty writable folder.
func open(path string) error {
	at := inside + path
	if err := syscall.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := syscall.Chmod(at, 0o1777); err != nil {
		return err
	}
	return syscall.Mount(at, at, "", syscall.MS_BIND, "")
}

// enter makes inside the only visible file system.
func enter() error {
	if err := syscall.Chdir(inside); err != nil {
		return err
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return err
	}
	if err := syscall.Chdir("/"); err != nil {
		return err
	}
	return mountSetattr("/", 0, &mountAttr{set: mountAttrRdonly})
}

// openFolder opens a folder, and follows no symbolic link.
func openFolder(top, path string) (int, error) {
	root, err := syscall.Open(top, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = syscall.Close(root) }()
	how := openHow{
		flags: oPath | syscall.O_DIRECTORY | syscall.O_CLOEXEC, resolve: resolveNoSymlinks | resolveInRoot,
	}
	if len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	return openat2(root, path, &how)
}

// descriptorPath returns a path for an open descriptor, for calls that take no
// descriptor. The host's /proc also contains this process.
func descriptorPath(fd int) string { return host + descriptorOf(fd) }

// descriptorOf returns the same path relative to the folder of the file system.
func descriptorOf(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
