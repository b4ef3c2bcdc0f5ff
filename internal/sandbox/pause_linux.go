//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Pause stops the program and everything that it started, and returns when none of it runs. Only a sandbox with a namespace of
// its own can: elsewhere nobody knows what the program started. Resume goes on.
func (p *Process) Pause() error {
	if !p.alone {
		return errors.New("what the program started is not known here, so it cannot be stopped for a while")
	}
	for {
		all, err := descendants(p.shim.Pid)
		if err != nil {
			return err
		}
		running := 0
		for _, pid := range all {
			state, err := stateOf(pid)
			if err != nil || strings.ContainsRune("TtZX", state) {
				continue // it stands, or has gone
			}
			running++
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		if running == 0 {
			return nil
		}
		time.Sleep(50 * time.Microsecond) // until the kernel has stopped them
	}
}

// Resume lets what Pause stopped go on.
func (p *Process) Resume() {
	all, err := descendants(p.shim.Pid)
	if err != nil {
		return // the sandbox has gone
	}
	for _, pid := range all {
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// descendants are the processes below one. In a sandbox whatever loses its parent becomes a child of process 1, so that none
// gets lost.
func descendants(pid int) (all []int, err error) {
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
			below, err := descendants(child)
			if err == nil {
				all = append(all, below...)
			}
		}
	}
	return all, nil
}

// stateOf is the letter by which the kernel tells what a process does.
func stateOf(pid int) (rune, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(") "))
	if !ok || len(rest) == 0 {
		return 0, errors.New("the kernel does not tell what a process does")
	}
	return rune(rest[0]), nil
}
