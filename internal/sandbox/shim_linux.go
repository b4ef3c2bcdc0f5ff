//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// shimName is what a shim is called when it is started: argv[0], alone.
const shimName = "remit-sandbox"

// control is the shim's descriptor of the socket to its parent.
const control = 3

// shimmed says that this program can be started again as a shim. It is the one
// variable of the package: a program either called Main or did not.
var shimmed atomic.Bool

// Main makes this program its own shim. It must be the first thing that main
// does: in a process that was started as a shim it does not return.
func Main() {
	if len(os.Args) == 1 && os.Args[0] == shimName {
		os.Exit(shim())
	}
	shimmed.Store(true)
}

// shim is process 1 of the sandbox. It returns the exit code of the shim, which
// tells nothing: what became of the program was said over the socket.
func shim() int {
	runtime.LockOSThread() // the first thread stays what it is, see start
	unix.CloseOnExec(control)
	// What the parent's process had open must reach nobody, whatever its flags.
	if err := unix.CloseRange(control+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return refuse(fmt.Errorf("descriptors: %w", err))
	}
	var o order
	if _, err := receive(control, &o); err != nil {
		return 1
	}
	go lifeline()
	s := &stage{order: o}
	if err := s.build(); err != nil {
		return refuse(err)
	}
	// What the program could read of this process, it could read of the host.
	if !s.leaveOut("dumpable") {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return refuse(err)
		}
	}
	began := make(chan started)
	go func() {
		// The thread that confines itself is not the first one, by which others
		// see this process, and no other goroutine ever runs on it.
		runtime.LockOSThread()
		pid, err := s.start()
		began <- started{pid, err}
		select {}
	}()
	child := <-began
	if child.err != nil {
		return refuse(child.err)
	}
	// A program that signals its process 1 ends nothing by it. It comes after the
	// start because it takes as long as all mounts together.
	signal.Notify(make(chan os.Signal, 1))
	exit := reap(child.pid)
	if send(control, message{Ended: &exit, Locked: s.unlock()}) != nil {
		return 1
	}
	select {} // the parent looks at the overlays and ends this process
}

// lifeline ends the shim, and with it the sandbox, when its parent is gone.
func lifeline() {
	var nothing struct{}
	_, err := receive(control, &nothing)
	if err != nil { // the parent has nothing more to say
		os.Exit(0)
	}
}

func refuse(err error) int {
	m := message{Failed: err.Error()}
	if l, ok := err.(levelError); ok { //nolint:errorlint // made here, never wrapped
		m.Failed, m.Level = l.Error(), true
	}
	_ = send(control, m)
	return 1
}

// stage is a sandbox being built.
type stage struct {
	order
	missing  []string // layers that could not be had
	landlock int
	uppers   []int // a descriptor for each overlay's upper folder, in the order of the roots
}

func (s *stage) lack(layer string, why error) {
	s.missing = append(s.missing, layer+": "+why.Error())
}

type levelError struct{ missing []string }

func (e levelError) Error() string { return strings.Join(e.missing, "; ") }

type started struct {
	pid int
	err error
}

// start confines this thread and starts the program from it.
func (s *stage) start() (pid int, err error) {
	if unix.Gettid() == unix.Getpid() {
		return 0, errors.New("the first thread would be confined")
	}
	path, err := s.program()
	if err != nil {
		return 0, err
	}
	if err := s.limit(); err != nil {
		return 0, err
	}
	if err := s.confine(); err != nil {
		return 0, err
	}
	reached := s.reached()
	if reached.Level < s.Require {
		return 0, levelError{reached.Missing}
	}
	pid, err = syscall.ForkExec(path, stringsOf(s.Argv), &syscall.ProcAttr{
		Dir: string(s.Dir), Env: stringsOf(s.Env), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.Argv[0], err)
	}
	if err := send(control, message{Began: &reached}, s.uppers...); err != nil {
		return 0, err
	}
	// The program's output ends when the program's processes do, not the shim.
	for fd := range 3 {
		_ = unix.Close(fd)
	}
	return pid, nil
}

// confine takes from this thread what the program must not have.
func (s *stage) confine() error {
	rules := s.rules() // before the capabilities go, which opening everything may need
	defer rules.close()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if !s.leaveOut("capabilities") {
		if err := dropCapabilities(); err != nil {
			return err
		}
	}
	if !s.leaveOut("landlock") {
		if err := rules.enforce(); err != nil {
			s.lack("landlock", err)
		}
	}
	if !s.leaveOut("seccomp") {
		if err := loadFilter(s.Network); err != nil {
			s.lack("seccomp", err)
		}
	}
	return nil
}

// leaveOut reports whether a test wants to do without a layer.
func (s *stage) leaveOut(layer string) bool {
	if !slices.Contains(s.Without, layer) {
		return false
	}
	s.missing = append(s.missing, layer+": left out")
	return true
}

func (s *stage) reached() Reached {
	r := Reached{Level: Strict, Missing: slices.Clone(s.missing), Landlock: s.landlock}
	if len(r.Missing) > 0 {
		r.Level = Partial
	}
	return r
}

// program finds the program as the sandbox sees it.
func (s *stage) program() (string, error) {
	name := string(s.Argv[0])
	if strings.Contains(name, "/") {
		return name, nil
	}
	search := "/usr/local/bin:/usr/bin:/bin"
	for _, v := range s.Env {
		if value, ok := strings.CutPrefix(string(v), "PATH="); ok {
			search = value
		}
	}
	if err := os.Setenv("PATH", search); err != nil {
		return "", err
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not in PATH of the sandbox (%s)", name, search)
	}
	return path, nil
}
