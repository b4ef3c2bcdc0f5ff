//go:build amd64 || arm64

package shim

import (
	"errors"
	"strconv"
	"syscall"
)

// report records a restriction that the program met. It counts repetitions.
func (v *supervisor) report(rule, kind, what, text string) {
	for i := range v.met {
		if v.met[i].kind == kind {
			v.met[i].times++
			return
		}
	}
	v.met = append(v.met, met{Restriction{rule, what + ": " + text}, kind, 1})
}

// end waits until no call is being served, and returns the recorded
// restrictions.
func (v *supervisor) end() (all []Restriction) {
	if v == nil {
		return nil
	}
	v.busy.Lock() // permanently: no caller remains
	for _, m := range v.met {
		if m.times > 1 {
			m.Text += " (" + strconv.Itoa(m.times) + " times)"
		}
		all = append(all, m.Restriction)
	}
	return all
}

// reportMounts records a call between a root and another folder.
func (v *supervisor) reportMounts(c *call) {
	if c.link {
		v.report("link", "link mounts", "link of "+c.old.text()+" to "+c.new.text(),
			"in the sandbox the two are on different file systems (EXDEV); copy the file")
		return
	}
	v.report("rename", "rename mounts", "rename of "+c.old.text()+" to "+c.new.text(),
		"in the sandbox the two are on different file systems (EXDEV); copy and remove it, or make it in the folder that it belongs to")
}

// reportRename records a folder that cannot be renamed. The program gets the
// error for two file systems. A full disk is a separate reason.
func (v *supervisor) reportRename(c *call, err error) error {
	if err == nil {
		return nil
	}
	for _, plain := range []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ENOMEM, syscall.ENOTEMPTY, syscall.EEXIST, syscall.ENOENT, syscall.ENOTDIR, syscall.EBUSY,
	} {
		if errors.Is(err, plain) {
			return plain
		}
	}
	v.report("rename", "rename", "rename of the folder "+c.old.text()+" to "+c.new.text(),
		"the sandbox could not move what is in it ("+err.Error()+"), so the call failed (EXDEV); copy and remove the folder")
	return syscall.EXDEV
}

// reportOpen records a folder that is renamed while a process has it open or
// works in it. The process keeps the previous folder, which is empty and
// removed.
func (v *supervisor) reportOpen(n name) {
	path, err := pathOf(n.parent)
	if err != nil || !heldOpen(path+"/"+n.plain()) {
		return
	}
	v.report("rename", "rename open", "rename of the folder "+n.text(),
		"a process has the folder open or works in it, and what it has open is an empty folder from now on; open it again by its new name")
}

// heldOpen reports whether a process of the sandbox has a folder open, or one
// in it.
func heldOpen(folder string) bool {
	proc, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(proc) }()
	self := strconv.Itoa(syscall.Getpid())
	for _, pid := range namesIn(proc) {
		if _, err := strconv.Atoi(pid); err != nil || pid == self {
			continue
		}
		if leads("/proc/"+pid+"/cwd", folder) {
			return true
		}
		fds, err := syscall.Open("/proc/"+pid+"/fd", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		names := namesIn(fds)
		_ = syscall.Close(fds)
		for _, fd := range names {
			var is syscall.Stat_t
			at := "/proc/" + pid + "/fd/" + fd
			if leads(at, folder) && syscall.Stat(at, &is) == nil && is.Mode&syscall.S_IFMT == syscall.S_IFDIR {
				return true
			}
		}
	}
	return false
}

// leads reports whether a link leads to a folder, or to a path in it.
func leads(link, folder string) bool {
	to, err := readLink(link)
	return err == nil && len(to) >= len(folder) && to[:len(folder)] == folder && (len(to) == len(folder) || to[len(folder)] == '/')
}

// reportLink records a new name for a file of the root: the overlay gives the new
// name another inode number.
func (v *supervisor) reportLink(root *supervised, c *call) {
	var is syscall.Stat_t
	if c.flags&^atSymlinkFollow != 0 || fstatat(c.old.parent, c.old.plain(), &is) != nil || is.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return
	}
	if root.wrote(c.old) {
		return
	}
	v.report("link", "link number", "link of "+c.old.text()+" to "+c.new.text(),
		"in the sandbox the new name of a file that was there before has an inode number of its own, and the two are different files to a program that compares the numbers; "+
			"copy the file, or call git clone with --no-hardlinks")
}

// wrote reports whether the program created a file itself.
func (r *supervised) wrote(n name) bool {
	path, err := pathOf(n.parent)
	if err != nil || len(path) < len(r.dir) || path[:len(r.dir)] != r.dir {
		return false
	}
	below := "." + path[len(r.dir):] + "/" + n.plain()
	how := openHow{flags: oPath | syscall.O_NOFOLLOW | syscall.O_CLOEXEC, resolve: resolveBeneath | resolveNoSymlinks}
	fd, err := openat2(r.upper, below, &how)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(fd) }()
	value := make([]byte, 256)
	_, err = syscall.Getxattr("/proc/self/fd/"+strconv.Itoa(fd), "user.overlay.origin", value)
	return err != nil
}

// text returns a name for a message.
func (n *name) text() string {
	path, err := pathOf(n.parent)
	if err != nil {
		return strconv.Quote(n.plain())
	}
	return strconv.Quote(path + "/" + n.plain())
}
