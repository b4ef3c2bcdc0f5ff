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

	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/hookclient"
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
	turns *turns

	daemon *daemon
}

// serve answers requests until the context ends, or until the process makes
// place for another one. It returns when the requests that it began have their
// answers. Later ones wait for [turns.release].
func (s *service) serve(ctx context.Context, l *listener) error {
	failed := make(chan error, 1)
	s.turns.accepting.Go(func() { failed <- s.accept(ctx, l) })
	select {
	case err := <-failed:
		s.turns.leave()
		return err
	case <-ctx.Done():
	case <-s.turns.leaving:
	}
	s.turns.leave()
	return nil
}

// accept answers each connection until the listener is closed.
func (s *service) accept(ctx context.Context, l *listener) error {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		s.turns.open.Go(func() {
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
	r, err := readRequest(buf)
	if errors.Is(err, errNoRequest) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.protocol != hookclient.Protocol() {
		return s.foreign(conn, r, pid)
	}
	if err := r.readFields(buf); err != nil {
		return err
	}
	if r.kind == "hook" && s.turns.givesWay(r.build, pid, s.srv.Busy) || !s.turns.enter() {
		return s.handOver(conn)
	}
	defer s.turns.exit()
	return s.serveOne(ctx, conn, r, pid, buf, in)
}

// serveOne answers a request of this protocol.
func (s *service) serveOne(ctx context.Context, conn *net.UnixConn, r request, pid int, buf *bufio.Reader, in *reader) error {
	switch r.kind {
	case "hook":
		return s.hook(ctx, conn, pid, r.fields)
	case "exec":
		return s.exec(ctx, conn, buf, in.takeFiles(), r.fields)
	case "settle":
		out := hooks.Reply{}
		if err := s.srv.Settle(ctx, r.fields[0]); err != nil {
			s.log.Warn("a prompt could not be ended", "folder", r.fields[0], "error", err)
			out.Exit = 1
		}
		return reply(conn, out)
	case "revert":
		return s.revert(ctx, conn, pid, r.fields)
	}
	return fmt.Errorf("unknown request %q", r.kind)
}

// request is one request. Its protocol and build have the same place in every
// protocol.
type request struct {
	protocol, build, kind string
	lengths, fields       []string
}

// errNoRequest says that a connection closed without a byte, as remit doctor
// does, which only asks who listens.
var errNoRequest = errors.New("no request")

// readRequest reads the line of a request.
func readRequest(from *bufio.Reader) (r request, err error) {
	line, err := from.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return r, errNoRequest
	}
	if err != nil || len(line) > maxLine {
		return r, errors.Join(errors.New("the request has no line"), err)
	}
	words := strings.Fields(string(line))
	if len(words) < 2 {
		return r, fmt.Errorf("a request of %d words", len(words))
	}
	if r.protocol, r.build = words[0], words[1]; r.protocol != hookclient.Protocol() {
		return r, nil
	}
	if len(words) != 6 {
		return r, fmt.Errorf("a request of %d words", len(words))
	}
	r.kind, r.lengths = words[2], words[3:]
	return r, nil
}

// readFields reads the fields of a request.
func (r *request) readFields(from *bufio.Reader) error {
	for _, w := range r.lengths {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 || n > maxField {
			return fmt.Errorf("a field of %q bytes", w)
		}
		field := make([]byte, n)
		if _, err := io.ReadFull(from, field); err != nil {
			return fmt.Errorf("the request ends early: %w", err)
		}
		r.fields = append(r.fields, string(field))
	}
	return nil
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
		a.Notice = strings.TrimSpace(s.changedHooks(c.Name, e.Dir) + "\n" + s.daemon.policy.news())
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
	_, err := fmt.Fprintf(conn, hookclient.Reply+" %d %d %d\n%s%s", r.Exit, len(r.Stdout), len(r.Stderr), r.Stdout, r.Stderr)
	return err
}
