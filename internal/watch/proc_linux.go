package watch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// local are the file systems that change only by system calls of this machine,
// each of which the kernel reports by the name that was used.
var local = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, 0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */}

// suitable refuses a folder whose changes the kernel does not report.
func suitable(dir, mounts string) error {
	for line := range strings.Lines(mounts) {
		if at, _, _ := strings.Cut(line, " "); at != dir {
			return fmt.Errorf("%w: another file system is mounted at %s", ErrUnsupported, at)
		}
	}
	var is unix.Statfs_t
	if err := unix.Statfs(dir, &is); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if !slices.Contains(local, int64(is.Type)) {
		return fmt.Errorf("%w: the kernel does not report every change on this kind of file system (%#x)", ErrUnsupported, is.Type)
	}
	return nil
}

// mountsIn returns a line for each mount at a folder or below it: its path,
// number and device.
func mountsIn(dir string) (string, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	var all strings.Builder
	below := []byte(escapes.Replace(strings.TrimSuffix(dir, "/")))
	for line := range bytes.Lines(raw) {
		if !bytes.Contains(line, below) {
			continue
		}
		f := bytes.Fields(line)
		if len(f) < 5 {
			continue
		}
		if at := f[4]; bytes.HasPrefix(at, below) && (len(at) == len(below) || at[len(below)] == '/') {
			fmt.Fprintf(&all, "%s %s %s\n", unescapes.Replace(string(at)), f[0], f[2])
		}
	}
	return all.String(), nil
}

// The kernel escapes these characters in paths.
var (
	escapes   = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)
	unescapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
)

// openedIn finds the files below a folder that processes have open or mapped so
// that they can write to them. It skips processes that this user may not
// inspect.
func openedIn(dir string) map[string]bool {
	found := map[string]bool{}
	add := func(at string) {
		if name, ok := strings.CutPrefix(at, strings.TrimSuffix(dir, "/")+"/"); ok {
			found[name] = true
		}
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return found
	}
	for _, p := range all {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		at := filepath.Join("/proc", p.Name())
		if raw, err := os.ReadFile(filepath.Join(at, "maps")); err == nil {
			mapped(raw, dir, add)
		}
		fds, err := os.ReadDir(filepath.Join(at, "fd"))
		if err != nil {
			continue
		}
		for _, fd := range fds {
			name, err := os.Readlink(filepath.Join(at, "fd", fd.Name()))
			if err == nil && strings.HasPrefix(name, dir) && writable(filepath.Join(at, "fdinfo", fd.Name())) {
				add(name)
			}
		}
	}
	return found
}

// mapped finds the shared mappings of files below a folder. One that is not
// writable can become so.
func mapped(maps []byte, dir string, add func(string)) {
	if !bytes.Contains(maps, []byte(dir)) {
		return
	}
	for line := range bytes.Lines(maps) {
		f := bytes.SplitN(line, []byte(" "), 6)
		if len(f) == 6 && len(f[1]) == 4 && f[1][3] == 's' {
			add(strings.ReplaceAll(strings.TrimSpace(string(f[5])), `\012`, "\n"))
		}
	}
}

// writable reports whether an open file can be written to.
func writable(fdinfo string) bool {
	raw, err := os.ReadFile(fdinfo)
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(raw, []byte("flags:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	flags, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 8, 64)
	return err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY
}
