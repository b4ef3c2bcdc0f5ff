package killtest_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fault is a way in which a system call fails.
type fault struct {
	name  string
	errno unix.Errno
	on    []string // the calls that fail
	makes bool     // for open: only if it creates a file
	stays bool     // every later call fails too
	half  bool     // half of it is done
}

var faults = []fault{
	{name: "EIO", errno: unix.EIO, on: []string{"write", "writev", "open", "name", "remove", "room", "attribute"}, makes: true},
	{name: "ENOSPC", errno: unix.ENOSPC, on: []string{"write", "writev", "open", "name", "room", "attribute"}, makes: true},
	{name: "full", errno: unix.ENOSPC, on: []string{"write", "writev", "open", "name", "room", "attribute"}, makes: true, stays: true},
	{name: "short", on: []string{"write"}, half: true},
	{name: "EINTR", errno: unix.EINTR, on: []string{"write", "writev", "open", "sync", "room"}, makes: true},
	{name: "EMFILE", errno: unix.EMFILE, on: []string{"open"}},
	{name: "sync", errno: unix.EIO, on: []string{"sync"}},
}

// director decides the result of the calls of one child.
type director struct {
	pid   int
	dir   string // only calls in this folder count
	fault *fault // nil: no fault, all calls are counted
	at    int    // number of the failing call, among those that can fail so

	counts map[string]int
	own    map[uint32]bool // threads of the child itself, not of its programs
	struck string          // the failed call
	idle   bool            // it was a repeated sync, or a sync of synced data
	dirty  map[string]bool // changed since its last sync
	when   func()          // called at the failure
}

func (d *director) decide(n *notice) answer {
	be := answer{Flags: letItBe}
	a, known := trapped[n.Nr]
	if !known || !d.isOwn(n.Pid) {
		return be
	}
	on, ok := d.target(n, a)
	if !ok {
		return be
	}
	makes := a.does != "open" || d.makes(n)
	hit := false
	for i := range faults {
		f := &faults[i]
		if !slices.Contains(f.on, a.does) || f.makes && !makes || f.half && n.Args[2] < 2 {
			continue
		}
		d.counts[f.name]++
		c := d.counts[f.name]
		hit = hit || f == d.fault && (c == d.at || f.stays && c > d.at)
	}
	if !hit {
		d.mark(a.does, on, n)
		return be
	}
	if d.struck == "" {
		d.idle = a.does == "sync" && !d.dirty[on]
		d.struck = fmt.Sprintf("%s of %s (call %d)", a.does, strings.TrimPrefix(on, d.dir+"/"), n.Nr)
		d.when()
	}
	if !d.fault.half {
		return answer{Error: -int32(d.fault.errno)}
	}
	wrote, err := half(n)
	if err != nil {
		return be
	}
	return answer{Value: int64(wrote)}
}

// mark records what a sync would make durable: a written file, or a folder in
// which names change. SQLite syncs folders too and does not report a failure.
// So code that needs the sync must sync them itself, and one success of the two
// suffices.
func (d *director) mark(does, on string, n *notice) {
	switch does {
	case "sync":
		delete(d.dirty, on)
		if d.struck == fmt.Sprintf("sync of %s (call %d)", strings.TrimPrefix(on, d.dir+"/"), n.Nr) {
			if info, err := os.Stat(on); err == nil && info.IsDir() {
				d.idle = true
			}
		}
	case "open":
		if _, err := os.Lstat(on); err != nil && d.makes(n) {
			d.dirty[path.Dir(on)] = true
		}
	case "name", "remove":
		d.dirty[path.Dir(on)] = true
	default:
		d.dirty[on] = true
	}
}

// isOwn reports whether a thread belongs to the child.
func (d *director) isOwn(tid uint32) bool {
	own, asked := d.own[tid]
	if !asked {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", d.pid, tid))
		own = err == nil
		d.own[tid] = own
	}
	return own
}

// target returns the target of a call, if it lies in the folder.
func (d *director) target(n *notice, a action) (string, bool) {
	proc := fmt.Sprintf("/proc/%d/", n.Pid)
	base := proc + "cwd"
	if fd := int32(n.Args[a.fd]); fd != unix.AT_FDCWD {
		base = proc + "fd/" + strconv.Itoa(int(fd))
	}
	at, err := os.Readlink(base)
	if err != nil {
		return "", false
	}
	if a.path >= 0 {
		name := peek(n.Pid, n.Args[a.path])
		if at = path.Join(at, name); path.IsAbs(name) {
			at = path.Clean(name)
		}
	}
	return at, strings.HasPrefix(at, d.dir+"/")
}

// makes reports whether an open creates a file.
func (d *director) makes(n *notice) bool {
	flags := n.Args[2]
	if n.Nr == unix.SYS_OPENAT2 {
		raw := peekBytes(n.Pid, n.Args[2], 8)
		if len(raw) < 8 {
			return false
		}
		flags = uint64(raw[0]) | uint64(raw[1])<<8 | uint64(raw[2])<<16
	}
	return flags&unix.O_CREAT != 0
}

func peekBytes(tid uint32, at uint64, n int) []byte {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", tid))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	data := make([]byte, n)
	got, _ := f.ReadAt(data, int64(at))
	return data[:max(got, 0)]
}

// peek reads a text of the child.
func peek(tid uint32, at uint64) string {
	data := peekBytes(tid, at, 4096)
	if len(data) == 0 { // it is at the end of the mapped memory
		data = peekBytes(tid, at, int(4096-at%4096))
	}
	text, _, _ := bytes.Cut(data, []byte{0})
	return string(text)
}

// half performs half of a write for the child.
func half(n *notice) (int, error) {
	if n.Nr != unix.SYS_WRITE && n.Nr != unix.SYS_PWRITE64 {
		return 0, errors.ErrUnsupported
	}
	data := peekBytes(n.Pid, n.Args[1], int(n.Args[2]/2))
	// The descriptor of a thread is that of its process.
	pidfd, err := unix.PidfdOpen(tgid(n.Pid), 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(pidfd) }()
	fd, err := unix.PidfdGetfd(pidfd, int(n.Args[0]), 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	if n.Nr == unix.SYS_PWRITE64 {
		return unix.Pwrite(fd, data, int64(n.Args[3]))
	}
	return unix.Write(fd, data)
}

// tgid returns the process of a thread.
func tgid(tid uint32) int {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	for line := range strings.Lines(string(raw)) {
		if text, ok := strings.CutPrefix(line, "Tgid:"); ok {
			id, _ := strconv.Atoi(strings.TrimSpace(text))
			return id
		}
	}
	return int(tid)
}
