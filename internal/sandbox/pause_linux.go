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

// Pause stops the program and its processes, and returns when none of them
// runs. It needs a sandbox with its own namespace: without one the program's
// processes are unknown. Resume continues them. If ctx ends first, Pause has
// already resumed them.
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
		if stuck > 20 { // a process waits for a child with shared memory until the child runs
			for _, pid := range all.waiting {
				release(pid)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Microsecond) // until the kernel has stopped them
	}
}

// pausedProcess lists the processes that had not stopped at a check.
type pausedProcess struct {
	running int
	waiting []int // in the kernel, which must finish before they stop
}

var errOver = errors.New("the sandbox has gone")

// halt sends a stop signal to all running processes.
func (p *Process) halt() (h pausedProcess, err error) {
	p.ending.Lock() // while the lock is held, no other process gets the shim's number
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

// release lets the children of a process run for a moment.
func release(pid int) {
	all, err := children(pid)
	if err != nil {
		return // it has exited
	}
	for _, child := range all {
		_ = unix.Kill(child, unix.SIGCONT)
	}
}

// Resume continues the processes that Pause stopped.
func (p *Process) Resume() {
	p.ending.Lock()
	defer p.ending.Unlock()
	if p.over {
		return
	}
	all, err := descendants(p.shim.Pid)
	if err != nil {
		return // the sandbox has exited
	}
	for _, pid := range all {
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// gone records that the shim's number can be reused.
func (p *Process) gone() {
	p.ending.Lock()
	defer p.ending.Unlock()
	p.over = true
}

// descendants returns the processes below one. In a sandbox an orphan becomes a
// child of process 1, so the result is complete.
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

// children returns the children of all threads of a process.
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

// stateOf reports whether any thread of a process runs, or waits for the
// kernel. A process that has exited does neither. One with an unknown state
// runs.
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
