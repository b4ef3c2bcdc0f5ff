//go:build amd64 || arm64

package shim

import (
	"errors"
	"syscall"
)

// GuardName is the only argument, argv[0], of the guard of a shim.
const GuardName = "remit-sandbox-guard"

// guard starts a shim that is not process 1 of a namespace, and ends all its
// processes after its end. The kernel lets a program signal the thread that
// started it, which has no more rights than the program. The program could kill
// or stop the shim by that thread. This process has no such thread.
func guard() int {
	if prctl(prSetChildSubreaper, 1, 0) != nil || prctl(syscall.PR_SET_DUMPABLE, 0, 0) != nil {
		return 1
	}
	spareThreads()
	// By then this process is in its control group, and so will be the shim.
	await(pollIn)
	attr := &syscall.ProcAttr{Dir: "/", Env: Environment(), Files: []uintptr{0, 1, 2, control}}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name}, attr)
	shim := -1 // a descriptor, because its number can be reused after its end
	if err == nil {
		shim, err = pidfdOpen(pid)
	}
	if err != nil {
		killRest()
		_ = Send(control, &Message{Kind: Failed, Why: "the shim: " + err.Error()})
		return 1
	}
	for fd := range 3 { // the program's output ends with the program's processes
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

// awaitChild waits for the end of a child.
func awaitChild(pid int) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// await waits for a message on the socket, or for its other end to close. It
// leaves the message to the shim.
func await(what int16) {
	for {
		err := poll(control, what|pollRDHup)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
