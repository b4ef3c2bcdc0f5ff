//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

func probeWriteMode(ctx context.Context, shim Shim, root, upper, why string) (WriteMode, error) {
	spec := Spec{Argv: []string{"-"}, Roots: []Root{{Dir: root, View: Overlay, Upper: upper}}, try: true}
	if why == "" {
		reached, err := try(ctx, shim, spec)
		var none NoOverlayError
		if !errors.As(err, &none) {
			return WriteMode{Protections: reached, View: Overlay}, err
		}
		why = none.Why
	}
	spec.Roots[0].View, spec.Roots[0].Upper = Direct, ""
	reached, err := try(ctx, shim, spec)
	return WriteMode{Protections: reached, View: Direct, Why: why}, err
}

func try(ctx context.Context, shim Shim, spec Spec) (Protections, error) {
	p, err := Start(ctx, shim, spec, Stdio{})
	if err != nil {
		return Protections{}, err
	}
	return p.Reached(), p.Close()
}

// Foreign returns a name in a folder that an overlay cannot copy up, because
// its owner or group has no ID in a program's namespace, or "". The namespace
// of an ordinary user has only that user and one group. Foreign checks
// everything in the folder.
func Foreign(ctx context.Context, dir string) (name string, err error) {
	uids, gids, err := mapped()
	if err != nil {
		return "", err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			if path == dir {
				return err
			}
			return nil // gone, or unreadable for the program too
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if is, ok := info.Sys().(*syscall.Stat_t); ok && (!has(uids, is.Uid) || !has(gids, is.Gid)) {
			if name, err = filepath.Rel(dir, path); err == nil {
				err = fs.SkipAll
			}
			return err
		}
		return nil
	})
	return name, err
}

// mapped returns the IDs of users and groups in a program's namespace.
func mapped() (uids, gids []syscall.SysProcIDMap, err error) {
	a, err := namespaces(false, nil)
	return a.UidMappings, a.GidMappings, err
}

func has(all []syscall.SysProcIDMap, id uint32) bool {
	for _, m := range all {
		if int(id) >= m.ContainerID && int(id)-m.ContainerID < m.Size {
			return true
		}
	}
	return false
}
