//go:build amd64 || arm64

package shim

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Name is the only argument, argv[0], of a shim.
const Name = "remit-sandbox"

// control is the shim's descriptor of the socket to its parent.
const control = 3

// ready states that this program can be started again as a shim. It is the only
// variable of the package: a program has called Main or not.
var ready atomic.Bool

// Ready reports whether this program called Main.
func Ready() bool { return ready.Load() }

// Environment returns the shim's environment. It sets the number of processors
// to two, which the shim can use at most. Otherwise the Go runtime would spend
// time on finding their number.
func Environment() []string {
	return []string{"GOMAXPROCS=2", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}
}

// Main makes this program its own shim: in a process that was started as a shim
// it does not return.
func Main() {
	switch calledAs() {
	case Name:
		syscall.Exit(run()) // skips output and cleanup of this program
	case GuardName:
		syscall.Exit(guard())
	}
	ready.Store(true)
}

// calledAs returns argv[0] if this program has no other argument.
func calledAs() string {
	if args := arguments(); len(args) == 1 {
		return args[0]
	}
	return ""
}

// run is process 1 of the sandbox. It returns the exit code of the shim, which
// has no meaning: the result of the program was sent over the socket.
func run() int {
	runtime.LockOSThread() // the first thread stays unchanged, see start
	syscall.CloseOnExec(control)
	s := &sandboxBuild{}
	var err error
	if s.mounts, err = Receive(control, &s.StartRequest); err != nil {
		return 1
	}
	s.missing = slices.Clone(s.Missing)
	if err := s.prepare(); err != nil {
		return refuse(err)
	}
	if err := s.build(); err != nil {
		return refuse(err)
	}
	// The program could read the host's data from this process.
	if !s.leaveOut("dumpable") {
		if err := prctl(syscall.PR_SET_DUMPABLE, 0, 0); err != nil {
			return refuse(failedAt("dumpable", err))
		}
	}
	s.ignored = ignoreSignals()
	spareThreads()
	began := make(chan started)
	go s.work(began)
	child := <-began
	switch {
	case child.pid != 0 && child.err != nil:
		killRest()
		return 1
	case child.err != nil:
		return refuse(child.err)
	case s.Try:
		return 0
	}
	return s.finish(child.pid)
}

// work starts the program on a thread that confines itself. This is not the
// first thread, which represents the process for others, and no other goroutine
// ever runs on it. It ends at once, because the program has the same rights and
// could signal this process through it.
func (s *sandboxBuild) work(began chan<- started) {
	runtime.LockOSThread()
	if syscall.Gettid() == syscall.Getpid() {
		go s.work(began) // while this goroutine keeps the first thread
		select {}
	}
	pid, err := s.start()
	began <- started{pid, err} // and the thread ends with its locked goroutine
}

// spareThreads creates every thread that this process may need beside its
// first. Two run, one waits for the parent, one waits for calls to serve, and
// one starts the program and ends. While the program runs, the process limit,
// which counts threads, can prevent new ones. The Go runtime ends a process
// that cannot get a thread.
func spareThreads() {
	const most = 5
	var made sync.WaitGroup
	made.Add(most)
	enough := make(chan struct{})
	for range most {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // the thread stays for others
			made.Done()
			<-enough
		}()
	}
	made.Wait()
	close(enough)
}

// prepare makes sure that the program inherits no descriptor of the parent's
// process, with any flags. It raises the loopback, and replaces the host's
// name.
func (s *sandboxBuild) prepare() error {
	if !s.leaveOut("descriptors") {
		if err := closeRange(control+1, ^uint(0)>>1, closeRangeCloexec); err != nil {
			return failedAt("descriptors", err)
		}
	}
	if s.Loopback {
		if err := raise(); err != nil {
			s.met.add(RuleLoopback, err.Error())
		} else {
			s.loopback = true
		}
	}
	if err := s.listenForProxy(); err != nil {
		s.met.add(RuleProxy, err.Error())
	}
	if !s.Namespaces || s.leaveOut("name") {
		return nil
	}
	if err := errors.Join(syscall.Sethostname([]byte("sandbox")), syscall.Setdomainname(nil)); err != nil {
		return refusal{NoNamespaces, "", failedAt("the host's name", err)}
	}
	return nil
}

// finish waits for the program's end and reports the result.
func (s *sandboxBuild) finish(pid int) int {
	if s.Namespaces {
		go lifeline(pid)
	} else {
		pin, err := pidfdOpen(pid)
		if err != nil {
			return 1
		}
		go func() {
			forward(func(sig syscall.Signal) { _ = pidfdSendSignal(pin, sig) })
			_ = pidfdSendSignal(pin, syscall.SIGKILL)
		}()
	}
	m := Message{Kind: Ended, Exit: s.reap(pid)}
	moved := s.supervisor.end()
	m.Locked = s.unlock()
	s.countNetwork()
	m.Met = append(s.met.list(), moved...)
	if Send(control, &m) != nil {
		return 1
	}
	if !s.Namespaces {
		return 0
	}
	select {} // the parent reads the overlays and ends this process
}

// lifeline forwards signals to the program, which leads its process group. It
// ends the shim, and with it the sandbox, when its parent has ended.
func lifeline(pid int) {
	forward(func(sig syscall.Signal) { _ = syscall.Kill(-pid, sig) })
	syscall.Exit(0)
}

// forward sends the parent's signals, until the parent has ended.
func forward(send func(syscall.Signal)) {
	for {
		var sig Signal
		if _, err := Receive(control, &sig); err != nil {
			return
		}
		send(syscall.Signal(sig))
	}
}

// sigset is a set of signals, by their numbers.
type sigset uint64

// ignoreSignals ignores all signals, so that a program cannot end its process 1
// by signals, even without Landlock. The kernel blocks those that the Go
// runtime does not catch. A program starts with the default action for all
// signals: the runtime resets those that it caught. The result contains those
// that were ignored before, as SIGHUP is below nohup.
func ignoreSignals() (found sigset) {
	for sig := uintptr(1); sig < 65; sig++ {
		switch sig {
		case uintptr(syscall.SIGCHLD), uintptr(syscall.SIGURG): // ignoring it would prevent waiting for children; the Go runtime needs it
			continue
		}
		now, known := handler(sig)
		// The C library, if there is one, checks the sender of its signals.
		// Programs started by glibc's posix_spawn, as make uses it, find them
		// ignored, and so would this program.
		own := sig == 32 || sig == 33
		switch {
		case !known:
		case own && now == sigIgnore:
			setHandler(sig, sigDefault)
		case own:
		case now == sigIgnore:
			found |= 1 << (sig - 1)
		case now != sigDefault:
			setHandler(sig, sigIgnore)
		}
	}
	return found
}

// set sets the action of all signals of a set.
func (set sigset) set(what uint64) {
	for sig := uintptr(1); sig < 65; sig++ {
		if set&(1<<(sig-1)) != 0 {
			setHandler(sig, what)
		}
	}
}

// Signal actions other than a function.
const (
	sigDefault = 0
	sigIgnore  = 1
)

// handler returns the action of a signal.
func handler(sig uintptr) (now uint64, known bool) {
	var action [4]uint64 // struct sigaction of the kernel: the handler is first
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0)
	return action[0], errno == 0
}

func setHandler(sig uintptr, what uint64) {
	action := [4]uint64{what}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

func refuse(err error) int {
	m := Message{Kind: Failed, Why: err.Error()}
	if r := (refusal{}); errors.As(err, &r) {
		m.Kind, m.Root, m.Why = r.kind, r.root, r.Error()
	}
	_ = Send(control, &m)
	return 1
}

// sandboxBuild is a sandbox under construction.
type sandboxBuild struct {
	StartRequest
	missing  []string // layers that are not available
	landlock int
	folders  []int // without namespaces, a descriptor for each root
	uppers   []int // a descriptor for each overlay's upper folder, in the order of the roots
	ignored  sigset
	loopback bool // the sandbox has its own network, with the loopback up
	proxy    int  // listener of the proxy, until it is sent; 0: none
	pts      bool // it has its own pseudo-terminals
	met      restrictions

	mounts     []int       // mounts of attached roots, in their order, until they are moved
	supervisor *supervisor // nil: none
	alone      string      // why there is none
}

func (s *sandboxBuild) lack(layer string, why error) {
	s.missing = append(s.missing, layer+": "+why.Error())
}

type started struct {
	pid int
	err error
}

// start confines this thread and starts the program from it.
func (s *sandboxBuild) start() (pid int, err error) {
	path := ""
	if !s.Try {
		if path, err = s.program(); err != nil {
			return 0, err
		}
	}
	if err := s.limit(); err != nil {
		return 0, err
	}
	if err := s.confine(); err != nil {
		return 0, err
	}
	level := s.level()
	if level < s.Require {
		return 0, refusal{TooLow, "", errors.New(joined(s.missing, "; "))}
	}
	if !s.Try {
		s.ignored.set(sigDefault) // the program would inherit ignored signals
		pid, err = syscall.ForkExec(path, s.Argv, &syscall.ProcAttr{
			Dir: s.Dir, Env: s.Env, Files: []uintptr{0, 1, 2},
			Sys: &syscall.SysProcAttr{Setsid: true, Setctty: s.Terminal > 0, Ctty: max(s.Terminal-1, 0)},
		})
		s.ignored.set(sigIgnore)
		if err != nil {
			return 0, failedAt(s.Argv[0], err)
		}
	}
	m, fds := Message{Kind: Began, Missing: s.missing, Landlock: s.landlock, Level: level, Alone: s.alone}, s.uppers
	if s.proxy != 0 {
		m.Proxied, fds = true, append(slices.Clone(fds), s.proxy)
	}
	if err := Send(control, &m, fds...); err != nil {
		return pid, err // no process waits any more
	}
	if s.proxy != 0 {
		_ = syscall.Close(s.proxy) // only the parent accepts
	}
	// The program's output ends with the program's processes, not with the
	// shim.
	for fd := range 3 {
		_ = syscall.Close(fd)
	}
	return pid, nil
}

// confine removes rights from this thread that the program must not have.
func (s *sandboxBuild) confine() error {
	rules := s.rules() // before the capabilities are dropped, which opening everything may need
	defer rules.close()
	if !s.leaveOut("privileges") {
		if err := prctl(prSetNoNewPrivs, 1, 0); err != nil {
			return failedAt("no_new_privs", err)
		}
	}
	if !s.leaveOut("capabilities") {
		if err := dropCapabilities(); err != nil {
			return err
		}
	}
	if !s.leaveOut("landlock") {
		if err := rules.enforce(); err != nil {
			s.landlock = 0
			s.lack("landlock", err)
		}
	}
	if !s.leaveOut("seccomp") {
		if err := s.filter(); err != nil {
			s.lack("seccomp", err)
		}
	}
	return nil
}

// leaveOut reports whether a test omits a layer.
func (s *sandboxBuild) leaveOut(layer string) bool {
	if !slices.Contains(s.Without, layer) {
		return false
	}
	s.missing = append(s.missing, layer+": left out")
	return true
}

// level returns 2 if no layer is missing. Without namespaces only Landlock
// protects the host's files: with neither there is no sandbox.
func (s *sandboxBuild) level() int {
	switch {
	case len(s.missing) == 0:
		return 2
	case !s.Namespaces && s.landlock == 0:
		return 0
	}
	return 1
}

// program returns the path of the program in the sandbox.
func (s *sandboxBuild) program() (string, error) {
	name := s.Argv[0]
	if _, _, path := cut(name, '/'); path {
		return name, nil
	}
	search := s.Path
	for _, v := range s.Env {
		if key, value, ok := cut(v, '='); ok && key == "PATH" {
			search = value
		}
	}
	for rest, more := search, true; more; {
		var dir string
		if dir, rest, more = cut(rest, ':'); dir == "" || dir[0] != '/' {
			continue // the working folder is not searched
		}
		path := dir + "/" + name
		var is syscall.Stat_t
		if syscall.Stat(path, &is) == nil && is.Mode&syscall.S_IFMT == syscall.S_IFREG && syscall.Access(path, xOK) == nil {
			return path, nil
		}
	}
	return "", errors.New(name + " is not in PATH of the sandbox (" + search + ")")
}
