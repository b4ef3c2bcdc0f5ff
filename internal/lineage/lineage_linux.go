//go:build !portable

package lineage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLinks bounds a chain; real chains have about ten processes.
const maxLinks = 1 << 10

// Own reads the chain of this process. An error means that it cannot be read;
// ErrUnknown means that this system never reports it.
func Own() (c Chain, err error) { return Of(os.Getpid()) }

// Lives reports whether the process runs. It is false for a process that only
// has the same number.
func (p Process) Lives() bool {
	l, err := link(p.PID)
	return err == nil && l.Start == p.Start
}

// Of reads the chain of a process; see Own.
func Of(process int) (c Chain, err error) {
	boot, err := read("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return c, err
	}
	c.Boot = strings.TrimSpace(string(boot))
	for _, kind := range []string{"pid", "user"} {
		name, err := os.Readlink("/proc/" + strconv.Itoa(process) + "/ns/" + kind)
		if err != nil {
			return Chain{}, err
		}
		c.Namespaces += name
	}
	for pid := process; pid != 0; {
		l, err := link(pid)
		if err != nil && c.hidden(pid, err) {
			break
		}
		if err != nil {
			return Chain{}, fmt.Errorf("process %d: %w", pid, err)
		}
		if n := len(c.Links); n == maxLinks || n > 0 && l.Start > c.Links[n-1].Start {
			return Chain{}, fmt.Errorf("process %d: it ended, and another one has its number", pid)
		}
		c.Links = append(c.Links, l)
		pid = l.Parent
	}
	return c, nil
}

// hidden reports whether a process belongs to another user and this system
// hides it. The last process of the chain still has it as its parent, so it
// lives.
func (c Chain) hidden(pid int, err error) bool {
	n := len(c.Links)
	if n == 0 || !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	child, err := link(c.Links[n-1].PID)
	return err == nil && child.Parent == pid && child.Start == c.Links[n-1].Start
}

// link reads one process.
func link(pid int) (l Link, err error) {
	at := "/proc/" + strconv.Itoa(pid)
	stat, err := read(at + "/stat")
	if err != nil {
		return l, err
	}
	// The name is in parentheses, and can contain any character.
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[shut+1:]))
	if open < 0 || shut < open || len(fields) < 20 {
		return l, fmt.Errorf("%s/stat cannot be read", at)
	}
	l.PID, l.Name = pid, string(stat[open+1:shut])
	terminal := 0
	for i, to := range map[int]*int{1: &l.Parent, 2: &l.Job, 3: &l.Session, 4: &terminal} {
		if *to, err = strconv.Atoi(fields[i]); err != nil {
			return l, err
		}
	}
	l.Terminal = terminal != 0
	if l.Start, err = strconv.ParseUint(fields[19], 10, 64); err != nil {
		return l, err
	}
	status, err := read(at + "/status")
	if err != nil {
		return l, err
	}
	if l.UID, l.Jobs, err = ofStatus(string(status)); err != nil {
		return l, fmt.Errorf("%s/status: %w", at, err)
	}
	groups, err := read(at + "/cgroup")
	if err != nil {
		return l, err
	}
	sum := sha256.Sum256(groups)
	l.Group = hex.EncodeToString(sum[:8])
	return l, nil
}

// ofStatus reads the user of a process, and whether it ignores the signals that
// interactive shells ignore: the stop from the terminal, and the stop for
// writing to it.
func ofStatus(status string) (uid int, jobs bool, err error) {
	uid = -1
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		words := strings.Fields(value)
		switch {
		case len(words) == 0:
		case key == "Uid":
			if uid, err = strconv.Atoi(words[0]); err != nil {
				return -1, false, err
			}
		case key == "SigIgn":
			mask, err := strconv.ParseUint(words[0], 16, 64)
			if err != nil {
				return -1, false, err
			}
			const both = 1<<(syscall.SIGTSTP-1) | 1<<(syscall.SIGTTOU-1)
			jobs = mask&both == both
		}
	}
	if uid < 0 {
		return -1, false, fmt.Errorf("it names no user")
	}
	return uid, jobs, nil
}

// read reads a file of the kernel; it rejects a file that replaced it.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var on unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &on); err != nil {
		return nil, err
	}
	if on.Type != unix.PROC_SUPER_MAGIC {
		return nil, fmt.Errorf("%s is not the kernel's", path)
	}
	return io.ReadAll(io.LimitReader(f, 1<<20))
}
