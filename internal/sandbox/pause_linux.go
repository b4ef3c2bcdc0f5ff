//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Pause stops the program and everything that it started, and returns when none of it runs. Only a sandbox with a namespace of
// its own can: elsewhere nobody knows what the program started. Resume goes on. When ctx ends first, it has gone on.
func (p *Process) Pause(ctx context.Context) error {
	if !p.alone {
		return errors.New("what the program started is not known here, so it cannot be stopped for a while")
	}
	stuck := 0
	for {
		all, err := p.halt()
		if err != nil || len(all.waiting) == 0 && all.running == 0 {
			return err
		}
		if stuck++; all.running > 0 {
			stuck = 0
		}
		if err := context.Cause(ctx); err != nil {
			p.Resume()
			return err
		}
		if stuck > 20 { // what waits for a child that it shares its memory with does so until that runs
			for _, pid := range all.waiting {
				release(pid)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Microsecond) // until the kernel has stopped them
	}
}

// pausedProcess is what did not stand yet when it was looked.
type pausedProcess struct {
	running int
	waiting []int // in the kernel, which lets none of them be stopped before it is done
}

var errOver = errors.New("the sandbox has gone")

// halt tells all to stop that does not stand.
func (p *Process) halt() (h pausedProcess, err error) {
	p.ending.Lock() // while it is held the shim's number is nobody else's
	defer p.ending.Unlock()
	if p.over {
		return h, errOver
	}
	all, err := descendants(p.shim.Pid)
	if err != nil {
		return h, err
	}
	for _, pid := range all {
		runs, waits := stateOf(pid)
		if runs || waits {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		if runs {
			h.running++
		} else if waits {
			h.waiting = append(h.waiting, pid)
		}
	}
	return h, nil
}

// release lets the children of a process go on for a moment.
func release(pid int) {
	all, err := children(pid)
	if err != nil {
		return // it has gone
	}
	for _, child := range all {
		_ = unix.Kill(child, unix.SIGCONT)
	}
}

// Resume lets what Pause stopped go on.
func (p *Process) Resume() {
	p.ending.Lock()
	defer p.ending.Unlock()
	if p.over {
		return
	}
	all, err := descendants(p.shim.Pid)
	if err != nil {
		return // the sandbox has gone
	}
	for _, pid := range all {
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// gone notes that the shim's number will be given to somebody else.
func (p *Process) gone() {
	p.ending.Lock()
	defer p.ending.Unlock()
	p.over = true
}

// descendants are the processes below one. In a sandbox whatever loses its parent becomes a child of process 1, so that none
// gets lost.
func descendants(pid int) (all []int, err error) {
	direct, err := children(pid)
	if err != nil {
		return nil, err
	}
	for _, child := range direct {
		all = append(all, child)
		if below, err := descendants(child); err == nil {
			all = append(all, below...)
		}
	}
	return all, nil
}

// children are those of all threads of a process.
func children(pid int) (all []int, err error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			if _, gone := os.Stat(fmt.Sprintf("/proc/%d/task/%s", pid, task.Name())); gone != nil {
				continue
			}
			return nil, fmt.Errorf("the kernel does not list the children of processes: %w", err)
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			all = append(all, child)
		}
	}
	return all, nil
}

// stateOf reports whether any thread of a process runs, or waits for the kernel. Of one that has gone none does; one whose state
// cannot be told runs.
func stateOf(pid int) (runs, waits bool) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false, false
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name()))
		if err != nil {
			continue // it has ended
		}
		_, rest, ok := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(") "))
		switch {
		case !ok || len(rest) == 0:
			runs = true
		case rest[0] == 'D':
			waits = true
		case !bytes.ContainsRune([]byte("TtZX"), rune(rest[0])):
			runs = true
		}
	}
	return runs, waits
}
