//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hierarchy is a place where this process may create control groups for some
// controllers. Version 2 has one for all of them, version 1 one each.
type hierarchy struct {
	version     int
	dir         string // path of this process's group
	controllers []string
}

// group is the control group of one run: a folder in each hierarchy.
type group struct {
	dirs  []string
	holds []string // its functions: memory, processes, kill
}

// hierarchies finds the control groups of this process, in the text of
// /proc/self/cgroup and /proc/self/mountinfo.
func hierarchies(cgroup, mountinfo string) (all []hierarchy) {
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		h := hierarchy{version: 2}
		if parts[1] != "" {
			h.version, h.controllers = 1, strings.Split(parts[1], ",")
		}
		if h.dir = mountOf(mountinfo, h, parts[2]); h.dir != "" {
			all = append(all, h)
		}
	}
	return all
}

// mountOf finds the folder of a group in a hierarchy.
func mountOf(mountinfo string, h hierarchy, path string) string {
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		at, kind := strings.Fields(before), strings.Fields(after)
		if len(at) < 5 || len(kind) < 3 {
			continue
		}
		names := strings.Split(kind[2], ",")
		fits := h.version == 2 && kind[0] == "cgroup2" ||
			h.version == 1 && kind[0] == "cgroup" && slices.Contains(names, h.controllers[0])
		rest, err := filepath.Rel(at[3], path)
		if fits && err == nil && filepath.IsLocal(rest) {
			return filepath.Join(at[4], rest)
		}
	}
	return ""
}

// newGroup creates a control group for one run, as far as this process may.
// Memory 0 sets no bound. A missing function is no error.
func newGroup(name string, memory, processes int64) (*group, error) {
	cgroup, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	g := &group{}
	var why error
	for _, h := range hierarchies(string(cgroup), string(mounts)) {
		why = errors.Join(why, g.add(h, name, memory, processes))
	}
	if len(g.dirs) == 0 {
		return nil, errors.Join(errors.New("no control group was delegated to this process"), why)
	}
	return g, nil
}

// add creates the group's folder in a hierarchy that provides a function.
func (g *group) add(h hierarchy, name string, memory, processes int64) error {
	if h.version == 1 && !slices.Contains(h.controllers, "memory") && !slices.Contains(h.controllers, "pids") {
		return nil
	}
	if h.version == 2 {
		// The kernel refuses this if the group already has processes. Then it
		// provides no bounds, only the kill function.
		for _, c := range []string{"+memory", "+pids"} {
			_ = write(h.dir, "cgroup.subtree_control", c)
		}
	}
	dir := filepath.Join(h.dir, name)
	_ = os.Remove(dir) // left by an earlier killed process with that number; only an empty one is removed
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	g.dirs = append(g.dirs, dir)
	bound := func(what, file string, value int64) {
		if value > 0 && write(dir, file, strconv.FormatInt(value, 10)) == nil {
			g.holds = append(g.holds, what)
		}
	}
	// The shim is in the group too.
	if h.version == 1 {
		bound("memory", "memory.limit_in_bytes", memory)
		bound("processes", "pids.max", processes+shimThreads)
		return nil
	}
	bound("memory", "memory.max", memory)
	_ = write(dir, "memory.swap.max", "0")
	bound("processes", "pids.max", processes+shimThreads)
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err == nil {
		g.holds = append(g.holds, "kill")
	}
	return nil
}

// shimThreads bounds the threads of a shim.
const shimThreads = 16

func write(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// enter adds a process to the group. Its later children are in the group too.
func (g *group) enter(pid int) error {
	for _, dir := range g.dirs {
		if err := write(dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("control group: %w", err)
		}
	}
	return nil
}

// kill kills all processes in the group, if the group can do that.
func (g *group) kill() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		_ = write(dir, "cgroup.kill", "1")
	}
}

// remove removes the empty group.
func (g *group) remove() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		for range 100 { // a killed process exits shortly after its parent was notified
			if err := os.Remove(dir); !errors.Is(err, unix.EBUSY) {
				break
			}
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
		}
	}
}
