package files

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
)

// Symlink creates a symbolic link under a free name. It stores the target
// unchanged. It refuses a target that leads out of the root. No operation here
// follows a link, but the next program that opens it does. That program may
// have more rights than the call, and its effects cannot be reverted. For the
// same reason ".." is valid only at the start of a target: after a name, its
// meaning depends on the current file of that name.
func (f *Files) Symlink(ctx context.Context, target, name string) error {
	if err := checkTarget(name, target); err != nil {
		return err
	}
	p, _, err := f.permit(ctx, name, perm.Write)
	if err != nil {
		return err
	}
	defer p.End()
	if err := f.free(ctx, name); err != nil {
		return err
	}
	a, err := f.fresh(name, fileImage{Version: Version{Type: typeLink, Target: target}, fresh: true})
	if err != nil {
		return err
	}
	return f.alter(ctx, p, a)
}

// checkTarget refuses a target that leads out of the root from the place of the
// link.
func checkTarget(name, target string) error {
	if disk.CheckTarget(target) != nil {
		return invalid(name, "the target of a link is not empty and holds no NUL")
	}
	if path.IsAbs(target) || filepath.IsAbs(target) || filepath.VolumeName(target) != "" {
		return invalid(name, "the target of a link is relative: an absolute one leads out of the root")
	}
	depth, named := strings.Count(name, "/"), false
	for _, element := range strings.Split(target, "/") {
		switch {
		case element == "" || element == ".":
		case element != "..":
			named = true
		case named:
			return invalid(name, "the target of a link has .. only at its beginning: behind a name, which may itself be a link, it can lead anywhere")
		default:
			depth--
		}
	}
	if depth < 0 {
		return invalid(name, "the target of the link would lead out of the root, for every program that opens it")
	}
	return nil
}
