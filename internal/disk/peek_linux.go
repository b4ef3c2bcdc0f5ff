//go:build !portable

package disk

import "golang.org/x/sys/unix"

// Peek is Lstat in one step, for callers that check thousands of names
// repeatedly. It follows links in the path anywhere. So the result is only good
// for comparing it with an earlier Lstat: the same inode with the same times is
// unchanged. For anything else, call Lstat.
func (r *linuxRoot) Peek(name string) (Info, error) {
	k, ok := r.walk.(*kernelWalker)
	if !ok {
		return r.Lstat(name)
	}
	if err := checkRootPath(name); err != nil {
		return Info{}, pathError("lstat", name, err)
	}
	var raw unix.Stat_t
	err := control(k.root, func(root int) error { return unix.Fstatat(root, name, &raw, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return Info{}, pathError("lstat", name, err)
	}
	info := infoOf(&raw)
	_, info.Name = split(name)
	return info, nil
}
