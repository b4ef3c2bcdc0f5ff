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

// The rules that this package knows only as numbers: package sandbox has the
// texts.
const (
	RuleCall     = "call"     // a refused system call; the text is its number
	RuleSocket   = "socket"   // a refused kind of socket; the text is family, type and protocol
	RuleNetwork  = "network"  // an address outside of the sandbox
	RulePort     = "port"     // a port of the loopback without a listener, by TCP
	RuleDatagram = "datagram" // the same by UDP, as for a name lookup
	RuleProxy    = "proxy"    // the proxy's port could not be opened; the text is the reason
	RuleLoopback = "loopback" // the loopback could not be raised; the text is the reason
)

// restrictions collects the rules that a program met. It is safe for concurrent
// use.
type restrictions struct {
	mu  sync.Mutex // never held across a wait
	all []Restriction
}

// add records that the program met a rule. It bounds what a program can make
// the shim store.
func (r *restrictions) add(rule, text string) {
	const most = 64
	r.mu.Lock()
	defer r.mu.Unlock()
	met := Restriction{rule, text}
	if len(r.all) < most && !slices.Contains(r.all, met) {
		r.all = append(r.all, met)
	}
}

// list returns the collected restrictions.
func (r *restrictions) list() []Restriction {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// watch serves the system calls that the filter reports, until no process has
// the filter any more. The filter reports only refused calls, renames and
// links, so other calls cost nothing.
func (s *sandboxBuild) watch(listener int) {
	runtime.LockOSThread() // its capabilities are per thread
	s.supervisor.begin()
	// Calls that still wait fail as unknown.
	defer func() { _ = syscall.Close(listener) }()
	for {
		var n notification // the kernel requires zeros
		switch err := receiveNotification(listener, &n); {
		case err == nil:
			s.answer(&n)
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ENOENT): // its thread has ended, or every thread with the filter
			if hungUp(listener) {
				return
			}
		default:
			return
		}
	}
}

// answer serves one call.
func (s *sandboxBuild) answer(n *notification) {
	if isMove(n.number) {
		s.supervisor.serve(n)
		return
	}
	_ = answerNotification(s.supervisor.listener, &notificationAnswer{id: n.id, err: -int32(s.refuse(n))}) //nolint:gosec // small
}

// refuse records a call and returns its error. A call that the filter should
// not have reported fails too.
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
