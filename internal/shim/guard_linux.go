//go:build amd64 || arm64

package shim

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// GuardName is what the guard of a shim is called when it is started: argv[0], alone.
const GuardName = "remit-sandbox-guard"

// guard starts a shim that is no process 1 of a namespace, and ends all that it left
// when it is gone. The kernel lets a program signal the thread that it was started
// from, which has no more rights than the program: by that thread the shim could be
// killed or stopped. No thread of this process is like that.
func guard() int {
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil || unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return 1
	}
	spareThreads()
	// By then this process is in its control group, and the shim will be.
	await(unix.POLLIN)
	attr := &syscall.ProcAttr{Dir: "/", Env: Environment(), Files: []uintptr{0, 1, 2, control}}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name}, attr)
	var shim *os.Process
	if err == nil {
		shim, err = os.FindProcess(pid)
	}
	if err != nil {
		_ = Send(control, &Message{Kind: Failed, Why: "the shim: " + err.Error()})
		return 1
	}
	for fd := range 3 { // the program's output ends when the program's processes do
		_ = unix.Close(fd)
	}
	ignoreSignals()
	go func() {
		await(unix.POLLRDHUP)
		_ = shim.Kill()
	}()
	_, _ = shim.Wait()
	killRest()
	return 0
}

// await waits until something is said on the socket, or its other end is gone, and
// leaves to the shim what is said.
func await(what int16) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: control, Events: what | unix.POLLRDHUP}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
