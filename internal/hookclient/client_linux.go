//go:build (amd64 || arm64) && !portable

package hookclient

import (
	"errors"
	"strconv"
	"syscall"
	_ "unsafe" // for go:linkname
)

// arguments returns os.Args without package os; see internal/shim.
//
//go:linkname arguments os.runtime_args
func arguments() []string

// Main handles the command line of this process if it is one of a client and
// the resident process listens. Then it does not return.
func Main() {
	if code, handled := Run(arguments()); handled {
		syscall.Exit(code)
	}
}

// Run handles a command line, and returns the exit code. It has read nothing if
// handled is false.
func Run(args []string) (code int, handled bool) {
	hook := len(args) == 3 && args[1] == "hook"
	exec := len(args) > 3 && args[1] == "exec" && args[2] == "--call"
	if !hook && !exec {
		return 0, false
	}
	conn, err := dial(Home(syscall.Getenv))
	if err != nil {
		return 0, false
	}
	if exec {
		return show(conn, args[3]), true
	}
	return report(conn, args[2])
}

// Build identifies the program of this process, and when it was built or
// installed: its time, size, and place.
func Build() string {
	var is syscall.Stat_t
	if err := syscall.Stat("/proc/self/exe", &is); err != nil {
		return "0"
	}
	number := func(n uint64) string { return "-" + strconv.FormatUint(n, 10) }
	return strconv.FormatInt(is.Mtim.Nano(), 10) + number(uint64(is.Size)) + number(is.Dev) + number(is.Ino)
}

// dial connects to the resident process. It names the socket by the descriptor
// of its folder, because the path of a socket has at most 107 bytes.
func dial(home string) (int, error) {
	if home == "" {
		return 0, syscall.ENOENT
	}
	dir, err := syscall.Open(home+"/"+Folder, syscall.O_DIRECTORY|syscall.O_CLOEXEC|0x200000, 0) // O_PATH
	if err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Close(dir) }()
	conn, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := syscall.Connect(conn, &syscall.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(dir) + "/" + Socket}); err != nil {
		_ = syscall.Close(conn)
		return 0, err
	}
	return conn, nil
}

// Settle asks the resident process to end the prompts of a workspace, so that
// they can be reverted. It returns an error if the process did not do so, and
// nil if none runs.
func Settle(home, dir string) error {
	conn, err := dial(home)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = syscall.SetsockoptTimeval(conn, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 60})
	return Settled(exchange(conn, "settle", nil, dir, "", ""))
}

// report sends one event and writes its answer. It returns false if another
// resident process must get the event.
func report(conn int, client string) (code int, handled bool) {
	var err error
	if !taken.read {
		taken.event, err = readAll(0)
		taken.read = err == nil
	}
	project, _ := syscall.Getenv("CLAUDE_PROJECT_DIR")
	if project == "" {
		project, _ = syscall.Getenv("GEMINI_PROJECT_DIR")
	}
	var r Response
	if err == nil {
		r, err = exchange(conn, "hook", nil, client, project, string(taken.event))
	}
	switch {
	case err == errEnded: //nolint:errorlint // of this package
		return 0, false
	case err != nil:
		complain("the resident process of remit did not answer: " + err.Error())
		return Without(taken.event), true
	case r.Word == Handover:
		return 0, false
	case r.Word == Refused:
		complain(string(r.Error))
		return Without(taken.event), true
	}
	return r.Code, true
}

// exitFailed is the exit code of a command that could not be run.
const exitFailed = 125

// show lends the standard streams of this process to a sandboxed command, and
// returns its exit code. If this process ends, so does the command.
func show(conn int, token string) int {
	dir, err := syscall.Getwd()
	if err != nil {
		complain("the current folder is unknown: " + err.Error())
		return exitFailed
	}
	var env []byte
	for _, variable := range syscall.Environ() {
		env = append(append(env, variable...), 0)
	}
	r, err := exchange(conn, "exec", syscall.UnixRights(0, 1, 2), token, dir, string(env))
	switch {
	case err != nil:
		complain("the resident process of remit ended; nothing of the command was applied, or recovery reports it: " + err.Error())
		return exitFailed
	case r.Word == Refused:
		complain(string(r.Error))
		return exitFailed
	case r.Word == Handover:
		complain("the command did not run: remit was replaced by another version meanwhile; repeat the call")
		return exitFailed
	}
	return r.Code
}

func complain(text string) { _, _ = syscall.Write(2, []byte("remit: "+text+"\n")) }

// errEnded says that the resident process ended without a reply.
var errEnded = errors.New("it ended")

// exchange sends a request and writes the outputs of the reply.
func exchange(conn int, kind string, rights []byte, fields ...string) (r Response, err error) {
	defer func() { _ = syscall.Close(conn) }()
	first := []byte(RequestLine(Build(), kind, fields...))
	if rights != nil {
		err = syscall.Sendmsg(conn, first, rights, nil, 0)
	} else {
		err = writeAll(conn, first)
	}
	for _, f := range fields {
		if err == nil {
			err = writeAll(conn, []byte(f))
		}
	}
	all, failed := readAll(conn) // also of one that did not read the whole request
	r, unclear := ParseReply(all)
	switch {
	case unclear == nil:
	case len(all) == 0 && (err != nil || failed == nil || errors.Is(failed, syscall.ECONNRESET)):
		return r, errEnded
	default:
		return r, errors.Join(err, failed, unclear)
	}
	if r.Word != Reply {
		return r, nil
	}
	return r, errors.Join(writeAll(1, r.Out), writeAll(2, r.Error))
}

func readAll(fd int) (all []byte, err error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := syscall.Read(fd, buf)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return all, err
		case n == 0:
			return all, nil
		}
		all = append(all, buf[:n]...)
	}
}

func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := syscall.Write(fd, p)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// taken is the event that this process has read, so that another resident
// process gets it if the first one hands over.
var taken struct {
	event []byte
	read  bool
}
