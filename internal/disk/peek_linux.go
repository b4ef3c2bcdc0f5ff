//go:build !portable

package disk

import "golang.org/x/sys/unix"

// Peek is Lstat in one step, for those who look at thousands of names again and again: it
// follows links on the way, wherever they lead. So what it tells is good for one thing,
// which is to compare it with what Lstat told before: the same inode with the same times
// is what it was, and anything else is to be looked at with Lstat.
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
