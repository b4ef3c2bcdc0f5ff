//go:build amd64 || arm64

package shim

import (
	"errors"
	"syscall"
)

// GuardName is what the guard of a shim is called when it is started: argv[0], alone.
const GuardName = "remit-sandbox-guard"

// guard starts a shim that is no process 1 of a namespace, and ends all that it left
// when it is gone. The kernel lets a program signal the thread that it was started
// from, which has no more rights than the program: by that thread the shim could be
// killed or stopped. No thread of this process is like that.
func guard() int {
	if prctl(prSetChildSubreaper, 1, 0) != nil || prctl(syscall.PR_SET_DUMPABLE, 0, 0) != nil {
		return 1
	}
	spareThreads()
	// By then this process is in its control group, and the shim will be.
	await(pollIn)
	attr := &syscall.ProcAttr{Dir: "/", Env: Environment(), Files: []uintptr{0, 1, 2, control}}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name}, attr)
	shim := -1 // a descriptor: its number may be somebody else's once it is gone
	if err == nil {
		shim, err = pidfdOpen(pid)
	}
	if err != nil {
		killRest()
		_ = Send(control, &Message{Kind: Failed, Why: "the shim: " + err.Error()})
		return 1
	}
	for fd := range 3 { // the program's output ends when the program's processes do
		_ = syscall.Close(fd)
	}
	ignoreSignals()
	go func() {
		await(pollRDHup)
		_ = pidfdSendSignal(shim, syscall.SIGKILL)
	}()
	awaitChild(pid)
	killRest()
	return 0
}

// awaitChild waits until a child is gone.
func awaitChild(pid int) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// await waits until something is said on the socket, or its other end is gone, and
// leaves to the shim what is said.
func await(what int16) {
	for {
		err := poll(control, what|pollRDHup)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
