//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/shim"
)

// native is an overlay that this process created, outside of every user
// namespace. Only for such an overlay the kernel renames folders and keeps hard
// links together.
type native struct {
	lower *os.File // the root
	upper *os.File // the written entries
	view  *os.File // the program's view
	index string   // the folder in which the overlay keeps files with several names
}

func (n *native) close() {
	for _, f := range []*os.File{n.lower, n.upper, n.view} {
		_ = f.Close()
	}
}

// attach creates the overlays that this process can create, and returns their
// mounts for the shim, in the order of the roots. The shim creates the others.
func (p *Process) attach(spec Spec, order *shim.StartRequest) (mounts []int) {
	p.native = map[string]*native{}
	for i := range order.Roots {
		r := &order.Roots[i]
		if r.View != shim.Overlay || !p.alone {
			continue
		}
		n, err := p.overlay(spec, *r)
		if err != nil {
			p.moves = err.Error()
			continue
		}
		r.Attached, p.native[r.Dir] = true, n
		mounts = append(mounts, int(n.view.Fd()))
	}
	return mounts
}

// overlay creates one overlay that is not attached yet.
func (p *Process) overlay(spec Spec, r shim.Root) (*native, error) {
	switch {
	case slices.Contains(spec.without, "native"):
		return nil, errors.New("left out")
	case os.Geteuid() != 0:
		return nil, errors.New("an ordinary user can mount an overlay only in a user namespace")
	case r.Upper == "":
		return nil, errors.New("what programs write is kept in memory")
	}
	base := filepath.Join(r.Upper, "native")
	if err := os.Mkdir(base, 0o700); err != nil {
		return nil, err
	}
	l, err := r.Layers(base)
	if err != nil {
		return nil, errors.Join(err, Discard(base))
	}
	mount, err := mountDetached(l)
	if err != nil {
		l.Close()
		return nil, errors.Join(fmt.Errorf("the kernel makes no overlay outside of a user namespace here: %w", err), Discard(base))
	}
	shim.Layers{Lower: -1, Hidden: l.Hidden, Upper: -1, Work: l.Work}.Close()
	return &native{
		lower: os.NewFile(uintptr(l.Lower), r.Dir), upper: os.NewFile(uintptr(l.Upper), r.Dir), view: os.NewFile(uintptr(mount), r.Dir), //nolint:gosec // descriptors
		index: filepath.Join(base, "work", "index"),
	}, nil
}

// mountDetached mounts an overlay of some layers.
func mountDetached(l shim.Layers) (mount int, err error) {
	fd, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fd) }()
	at := func(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
	lower := at(l.Lower)
	if l.Hidden >= 0 {
		lower = at(l.Hidden) + ":" + lower
	}
	for _, option := range [][2]string{
		{"source", "overlay"},
		{"lowerdir", lower},
		{"upperdir", at(l.Upper)},
		{"workdir", at(l.Work)},
		{"redirect_dir", "on"},
		{"index", "on"},
		{"metacopy", "off"},
		{"nfs_export", "off"},
	} {
		if err := unix.FsconfigSetString(fd, option[0], option[1]); err != nil {
			return -1, fmt.Errorf("%s: %w", option[0], err)
		}
	}
	// Without volatile the kernel would sync each file that is copied up.
	if err := unix.FsconfigSetFlag(fd, "volatile"); err != nil {
		return -1, fmt.Errorf("volatile: %w", err)
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return -1, err
	}
	return unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}
