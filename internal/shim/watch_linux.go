//go:build amd64 || arm64

package shim

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
)

// The rules that this package knows only as numbers: package sandbox has the words.
const (
	RuleCall     = "call"     // a system call that is refused; the text is its number
	RuleSocket   = "socket"   // a kind of socket that is refused; the text is family, type and protocol
	RuleNetwork  = "network"  // an address outside of the sandbox
	RulePort     = "port"     // a port of the loopback that nothing listens on, by TCP
	RuleDatagram = "datagram" // the same by UDP, as a question of a name is
	RuleLoopback = "loopback" // the loopback could not be raised; the text is why
)

// restrictions collects what a program met. It is safe for concurrent use.
type restrictions struct {
	mu  sync.Mutex // never held across a wait
	all []Restriction
}

// add remembers that the program met a rule. It bounds what a program can make the
// shim remember.
func (r *restrictions) add(rule, text string) {
	const most = 64
	r.mu.Lock()
	defer r.mu.Unlock()
	met := Restriction{rule, text}
	if len(r.all) < most && !slices.Contains(r.all, met) {
		r.all = append(r.all, met)
	}
}

// list returns what was collected.
func (r *restrictions) list() []Restriction {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// watch answers the system calls that the filter hands to this process, until no
// process has the filter any more. The filter hands over those alone that are
// refused, and those that rename and link, so that no other call costs anything.
func (s *sandboxBuild) watch(listener int) {
	runtime.LockOSThread() // whose capabilities are its own
	s.supervisor.begin()
	// Whoever still waits is told that there is no such call.
	defer func() { _ = syscall.Close(listener) }()
	for {
		var n notification // the kernel takes it only when it is all zeros
		switch err := receiveNotification(listener, &n); {
		case err == nil:
			s.answer(&n)
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ENOENT): // its thread is gone, or every thread that has the filter
			if hungUp(listener) {
				return
			}
		default:
			return
		}
	}
}

// answer answers one call.
func (s *sandboxBuild) answer(n *notification) {
	if isMove(n.number) {
		s.supervisor.serve(n)
		return
	}
	_ = answerNotification(s.supervisor.listener, &notificationAnswer{id: n.id, err: -int32(s.refuse(n))}) //nolint:gosec // small
}

// refuse remembers a call and says how it fails. A call that the filter should not have
// handed over fails too.
func (s *sandboxBuild) refuse(n *notification) syscall.Errno {
	number := func(v uint64) string { return strconv.Itoa(int(int32(v))) } //nolint:gosec // as the kernel takes it
	switch uintptr(n.number) {                                             //nolint:gosec // it is positive
	case syscall.SYS_SOCKET, syscall.SYS_SOCKETPAIR:
		s.met.add(RuleSocket, number(n.args[0])+" "+number(n.args[1]&0xf)+" "+number(n.args[2]))
		return syscall.EAFNOSUPPORT
	}
	s.met.add(RuleCall, strconv.Itoa(int(n.number)))
	return syscall.EPERM
}
