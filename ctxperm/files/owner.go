package files

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/remit-dev/remit/internal/disk"
)

// withOwner completes the image of a new file: its owner, and what its folder
// determines. The argument made holds the folders that will exist by then.
func (f *Files) withOwner(ctx context.Context, path string, img fileImage, made map[string]Version) (fileImage, error) {
	me := f.site.root.Self().Owner
	if img.Type == "" || !img.fresh && (img.Owner.Known || !me.Known) {
		return img, nil
	}
	folder, ok := made[parentOf(path)]
	if !ok {
		is, err := f.site.look(ctx, parentOf(path), hashing)
		if err != nil {
			return fileImage{}, refused(err)
		}
		folder = is.Version
	}
	img.Owner = Owner(me)
	if me.Known && folder.Perm&fs.ModeSetgid != 0 {
		img.Owner.Group = folder.Owner.Group
	}
	list, ok := folder.Xattrs[disk.XattrDefault]
	if !img.fresh || img.Type == typeLink {
		return img, nil
	}
	if img.Type == typeDir {
		img.Perm |= folder.Perm & fs.ModeSetgid
	}
	if !ok {
		return img, nil
	}
	special := img.Perm &^ fs.ModePerm
	acl, bits := inherited(list, img.Perm&fs.ModePerm)
	img.Perm = bits | special
	img.Xattrs = with(img.Xattrs, disk.XattrAccess, acl)
	if img.Type == typeDir {
		img.Xattrs = with(img.Xattrs, disk.XattrDefault, list)
	}
	return img, nil
}

// carries refuses a version that this process could not create under a name. It
// may not be permitted to set that owner, group or attribute.
func (s hostRoot) carries(name string, v Version, folder func(string) (disk.Info, error)) error {
	if v.Type == "" {
		return nil
	}
	me := s.root.Self()
	if !me.May(disk.Owner(v.Owner), disk.Owner{}, false) {
		parent, err := folder(parentOf(name))
		if err != nil {
			return err
		}
		if !me.May(disk.Owner(v.Owner), parent.Owner, parent.Perm&fs.ModeSetgid != 0) {
			return invalid(name, fmt.Sprintf("it belongs to user %d and group %d, which this process may not give to a file, so it could not be made again", v.Owner.User, v.Owner.Group))
		}
	}
	for _, key := range sorted(v.Xattrs) {
		if !me.Sets(key) {
			return invalid(name, fmt.Sprintf("it has the attribute %s, which this process may not set, so it could not be made again", key))
		}
	}
	return nil
}

// reversible refuses an edit if this process could not create both of its
// sides. A folder that stays one is checked only for the differences.
func (s hostRoot) reversible(ctx context.Context, name string, was, will Version, folder func(string) (disk.Info, error)) error {
	if was.Type == typeDir && will.Type == typeDir {
		if was.Owner == will.Owner {
			was.Owner, will.Owner = Owner{}, Owner{}
		}
		was.Xattrs, will.Xattrs = differing(was.Xattrs, will.Xattrs), differing(will.Xattrs, was.Xattrs)
	}
	if err := s.carries(name, was, folder); err != nil {
		return err
	}
	return s.carries(name, will, folder)
}

// differing returns the attributes that the other map lacks, or has with
// another value.
func differing(some, others map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for key, value := range some {
		if other, ok := others[key]; !ok || !slices.Equal(value, other) {
			out[key] = value
		}
	}
	return out
}
