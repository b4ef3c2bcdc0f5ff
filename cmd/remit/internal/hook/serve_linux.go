package hook

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/hooks"
)

// Limits of one request, in bytes.
const (
	maxLine  = 256
	maxField = 64 << 20
)

// service answers the requests of hooks. Only processes of the same user are
// served.
type service struct {
	app   *cli.App
	srv   *hooks.Server
	watch *watcher
	log   *slog.Logger

	daemon *daemon
}

// serve answers requests until the context ends or the listener is closed. It
// returns when all requests have their answers.
func (s *service) serve(ctx context.Context, l *listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.UnixListener.Close() })
	defer stop()
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		open.Go(func() {
			defer func() { _ = conn.Close() }()
			if err := s.one(ctx, conn); err != nil {
				s.log.Warn("a request was not answered", "error", err)
			}
		})
	}
}

// one answers the one request of a connection.
func (s *service) one(ctx context.Context, conn *net.UnixConn) (err error) {
	defer func() { // one request must not end the others
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	pid, err := peer(conn)
	if err != nil {
		return err
	}
	in := &reader{conn: conn}
	defer in.closeFiles()
	buf := bufio.NewReader(in)
	kind, fields, err := request(buf)
	if err != nil {
		return err
	}
	switch kind {
	case "hook":
		return s.hook(ctx, conn, pid, fields)
	case "exec":
		return s.exec(ctx, conn, buf, in.takeFiles(), fields)
	case "settle":
		r := hooks.Reply{}
		if err := s.srv.Settle(ctx, fields[0]); err != nil {
			s.log.Warn("a prompt could not be ended", "folder", fields[0], "error", err)
			r.Exit = 1
		}
		return reply(conn, r)
	case "revert":
		return s.revert(ctx, conn, pid, fields)
	}
	return fmt.Errorf("unknown request %q", kind)
}

// peer returns the process at the other end, which belongs to this user.
func peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return 0, err
	}
	if int(cred.Uid) != os.Getuid() {
		return 0, fmt.Errorf("a process of user %d is not served", cred.Uid)
	}
	return int(cred.Pid), nil
}

// request reads the line and the fields of a request.
func request(r *bufio.Reader) (kind string, fields []string, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil || len(line) > maxLine {
		return "", nil, errors.Join(errors.New("the request has no line"), err)
	}
	words := strings.Fields(string(line))
	if len(words) != 4 {
		return "", nil, fmt.Errorf("a request of %d words", len(words))
	}
	for _, w := range words[1:] {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 || n > maxField {
			return "", nil, fmt.Errorf("a field of %q bytes", w)
		}
		field := make([]byte, n)
		if _, err := io.ReadFull(r, field); err != nil {
			return "", nil, fmt.Errorf("the request ends early: %w", err)
		}
		fields = append(fields, string(field))
	}
	return words[0], fields, nil
}

// hook answers one event.
func (s *service) hook(ctx context.Context, conn *net.UnixConn, pid int, fields []string) error {
	c, ok := hooks.Find(fields[0])
	if !ok {
		return reply(conn, hooks.Reply{Stderr: fmt.Sprintf("remit: unknown client %q\n", fields[0]), Exit: 2})
	}
	e, err := c.Parse([]byte(fields[2]))
	if err != nil {
		return reply(conn, c.Refuse(e, err.Error()))
	}
	if err := s.watch.saw(c.Name, e, pid); err != nil {
		return reply(conn, c.Refuse(e, err.Error()))
	}
	a := s.srv.Handle(ctx, c, e, fields[1])
	if e.Moment == hooks.SessionStarts {
		a.Notice = strings.TrimSpace(s.changedHooks(c.Name, e.Dir) + "\n" + s.changedPolicy())
	}
	s.watch.opened(c.Name, e.Session)
	return reply(conn, c.Reply(e, a))
}

// changedHooks tells the person, in the log and where the client shows it, if
// the hooks of a client are not as remit connect wrote them.
func (s *service) changedHooks(client, dir string) string {
	d, err := agentguard.ClientDrift(s.app, client, dir)
	if err != nil {
		s.log.Warn("the hooks of a client could not be compared with what remit connect wrote", "client", client, "error", err)
		return ""
	}
	for _, change := range d.Changes {
		s.log.Warn("the hooks of a client were changed", "client", client, "change", change)
	}
	if len(d.Changes) == 0 {
		return ""
	}
	return "remit: the hooks of " + d.Title + " were changed, so calls can run unseen: " + strings.Join(d.Changes, "; ") + ". If you did not do this: remit connect " + client
}

// changedPolicy tells the person, where the client shows it, if the policy
// changed since a resident process loaded it. The log has it too.
func (s *service) changedPolicy() string {
	what := s.daemon.changedPolicy()
	if what == "" {
		return ""
	}
	return "remit: the policy of coding agents changed: " + what + ". If you did not do this: look at the files, and restore them"
}

// exec runs a sandboxed command for the process at the other end.
func (s *service) exec(ctx context.Context, conn *net.UnixConn, rest io.Reader, files []*os.File, fields []string) error {
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if len(files) != 3 {
		return fmt.Errorf("%d descriptors; a command has 3", len(files))
	}
	environ := strings.Split(strings.TrimSuffix(fields[2], "\x00"), "\x00")
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, rest) // ends when the other process does
		close(gone)
	}()
	exit := make(chan hooks.Exit, 1)
	err := s.srv.Attach(fields[0], &hooks.Command{Dir: fields[1], Environ: environ, Stdin: files[0], Stdout: files[1], Stderr: files[2], Gone: gone, Exit: exit})
	if err != nil {
		return reply(conn, hooks.Reply{Stderr: "remit: " + err.Error() + "\n", Exit: 125})
	}
	select {
	case e := <-exit:
		r := hooks.Reply{Exit: e.Code}
		if e.Message != "" {
			r.Stderr = "remit: " + e.Message + "\n"
		}
		return reply(conn, r)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func reply(conn *net.UnixConn, r hooks.Reply) error {
	_, err := fmt.Fprintf(conn, "reply %d %d %d\n%s%s", r.Exit, len(r.Stdout), len(r.Stderr), r.Stdout, r.Stderr)
	return err
}

// reader reads a connection, and keeps the descriptors that come with the data.
type reader struct {
	conn  *net.UnixConn
	files []*os.File
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	rights := make([]byte, unix.CmsgSpace(3*4))
	n, oob, _, _, err := r.conn.ReadMsgUnix(p, rights)
	if oob > 0 {
		r.keep(rights[:oob])
	}
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

func (r *reader) keep(rights []byte) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			r.files = append(r.files, os.NewFile(uintptr(fd), "stream"))
		}
	}
}

func (r *reader) takeFiles() []*os.File {
	files := r.files
	r.files = nil
	return files
}

func (r *reader) closeFiles() {
	for _, f := range r.takeFiles() {
		_ = f.Close()
	}
}
