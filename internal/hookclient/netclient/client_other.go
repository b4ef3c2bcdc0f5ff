//go:build portable || !linux || !(amd64 || arm64)

package netclient

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/remit-dev/remit/internal/hookclient"
)

// Run handles a command line of a hook, and returns the exit code. If handled
// is false, no resident process could answer.
func Run(args []string) (code int, handled bool) {
	if len(args) != 3 || args[1] != "hook" {
		return 0, false
	}
	conn, err := dial(hookclient.Home(os.LookupEnv))
	if err != nil {
		return 0, false
	}
	return report(conn, args[2])
}

// Build identifies the program of this process, and when it was built or
// installed: its time and size.
func Build() string {
	path, err := os.Executable()
	if err != nil {
		return "0"
	}
	info, err := os.Stat(path)
	if err != nil {
		return "0"
	}
	return fmt.Sprintf("%d-%d", info.ModTime().UnixNano(), info.Size())
}

// maxPath is the maximum length of the path of a socket, on macOS.
const maxPath = 103

// Address returns the path of the socket below the user's folder for state.
func Address(home string) (string, error) {
	path := filepath.Join(home, filepath.FromSlash(hookclient.Folder), hookclient.Socket)
	if len(path) > maxPath {
		return "", fmt.Errorf("the path %s is too long for a socket: set XDG_STATE_HOME to a folder with a shorter path", path)
	}
	return path, nil
}

func dial(home string) (net.Conn, error) {
	if home == "" {
		return nil, fs.ErrNotExist
	}
	path, err := Address(home)
	if err == nil {
		_, err = os.Lstat(path) // the errors of dial differ between systems
	}
	if err != nil {
		return nil, err
	}
	return net.Dial("unix", path) //nolint:noctx // it answers at once or not at all
}

// Settle asks the resident process to end the prompts of a workspace, so that
// they can be reverted. It returns an error if the process did not do so, and
// nil if none runs.
func Settle(home, dir string) error {
	conn, err := dial(home)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || isRefused(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return hookclient.Settled(exchange(conn, "settle", dir, "", ""))
}

// report sends one event and writes its answer. It returns false if another
// resident process must get the event.
func report(conn net.Conn, client string) (code int, handled bool) {
	var err error
	if !taken.read {
		taken.event, err = io.ReadAll(os.Stdin)
		taken.read = err == nil
	}
	project := os.Getenv("CLAUDE_PROJECT_DIR")
	if project == "" {
		project = os.Getenv("GEMINI_PROJECT_DIR")
	}
	var r hookclient.Response
	if err == nil {
		r, err = exchange(conn, "hook", client, project, string(taken.event))
	}
	switch {
	case errors.Is(err, errEnded):
		return 0, false
	case err != nil:
		complain("the resident process of remit did not answer: " + err.Error())
		return hookclient.Without(taken.event), true
	case r.Word == hookclient.Handover:
		return 0, false
	case r.Word == hookclient.Refused:
		complain(string(r.Error))
		return hookclient.Without(taken.event), true
	}
	return r.Code, true
}

func complain(text string) { _, _ = os.Stderr.WriteString("remit: " + text + "\n") }

// errEnded says that the resident process ended without a reply.
var errEnded = errors.New("it ended")

// exchange sends a request and writes the outputs of the reply.
func exchange(conn net.Conn, kind string, fields ...string) (r hookclient.Response, err error) {
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, hookclient.RequestLine(Build(), kind, fields...)+strings.Join(fields, ""))
	all, failed := io.ReadAll(conn) // also of one that did not read the whole request
	r, unclear := hookclient.ParseReply(all)
	switch {
	case unclear == nil:
	case len(all) == 0 && (err != nil || failed == nil || errors.Is(failed, syscall.ECONNRESET)):
		return r, errEnded
	default:
		return r, errors.Join(err, failed, unclear)
	}
	if r.Word != hookclient.Reply {
		return r, nil
	}
	_, err = os.Stdout.Write(r.Out)
	_, failed = os.Stderr.Write(r.Error)
	return r, errors.Join(err, failed)
}

// taken is the event that this process has read, so that another resident
// process gets it if the first one hands over.
var taken struct {
	event []byte
	read  bool
}
