//go:build amd64 || arm64

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
	conn, err := dial(home(syscall.Getenv))
	if err != nil {
		return 0, false
	}
	if exec {
		return show(conn, args[3]), true
	}
	return report(conn, args[2]), true
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
	code, err := exchange(conn, "settle", nil, dir, "", "")
	if err == nil && code != 0 {
		err = errSettle
	}
	return err
}

// errSettle says that a prompt did not end.
var errSettle = errors.New("the resident process could not end the prompt; its log tells why")

// exitBlocks is the exit code with which a client does not run its tool.
const exitBlocks = 2

// report sends one event and writes its answer.
func report(conn int, client string) int {
	event, err := readAll(0)
	project, _ := syscall.Getenv("CLAUDE_PROJECT_DIR")
	if project == "" {
		project, _ = syscall.Getenv("GEMINI_PROJECT_DIR")
	}
	var code int
	if err == nil {
		code, err = exchange(conn, "hook", nil, client, project, string(event))
	}
	if err == nil {
		return code
	}
	complain("the resident process of remit did not answer: " + err.Error())
	if decides(event) {
		return exitBlocks
	}
	return 1 // at other moments, exit code 2 has other effects
}

// decides reports whether the client waits for a decision.
func decides(event []byte) bool {
	for _, name := range []string{`"PreToolUse"`, `"BeforeTool"`, `"preToolUse"`, `"tool.execute.before"`} {
		for i := 0; i+len(name) <= len(event); i++ {
			if string(event[i:i+len(name)]) == name {
				return true
			}
		}
	}
	return false
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
	code, err := exchange(conn, "exec", syscall.UnixRights(0, 1, 2), token, dir, string(env))
	if err != nil {
		complain("the resident process of remit ended; nothing of the command was applied, or recovery reports it: " + err.Error())
		return exitFailed
	}
	return code
}

func complain(text string) { _, _ = syscall.Write(2, []byte("remit: "+text+"\n")) }

// exchange sends a request, writes the outputs of the reply, and returns its
// exit code.
func exchange(conn int, kind string, rights []byte, fields ...string) (code int, err error) {
	line := kind
	for _, f := range fields {
		line += " " + strconv.Itoa(len(f))
	}
	first := []byte(line + "\n")
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
	if err != nil {
		return 0, err
	}
	all, err := readAll(conn)
	if err != nil {
		return 0, err
	}
	code, out, complaint, err := parseReply(all)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(writeAll(1, out), writeAll(2, complaint)); err != nil {
		return 0, err
	}
	return code, nil
}

// errReply says that the connection ended before the reply.
var errReply = errors.New("the reply is incomplete")

// parseReply splits a reply.
func parseReply(all []byte) (code int, out, complaint []byte, err error) {
	end := -1
	for i, b := range all {
		if b == '\n' {
			end = i
			break
		}
	}
	if end < 6 || string(all[:6]) != "reply " {
		return 0, nil, nil, errReply
	}
	var numbers [3]int
	at := 6
	for i := range numbers {
		to := at
		for to < end && all[to] != ' ' {
			to++
		}
		if numbers[i], err = strconv.Atoi(string(all[at:to])); err != nil || numbers[i] < 0 {
			return 0, nil, nil, errReply
		}
		at = min(to+1, end)
	}
	rest := all[end+1:]
	if len(rest) != numbers[1]+numbers[2] {
		return 0, nil, nil, errReply
	}
	return numbers[0], rest[:numbers[1]], rest[numbers[1]:], nil
}

func readAll(fd int) (all []byte, err error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := syscall.Read(fd, buf)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return nil, err
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
