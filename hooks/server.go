package hooks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/remit-dev/remit/agent"
)

// Workspace is a project folder with its runtime. The runtime has Tools, a root
// "workspace" at Dir, a process.Snapshotter, and agent.SuspendForApproval.
type Workspace struct {
	Dir     string // absolute, without links
	Runtime *agent.Runtime
	// Session opens the session of one session of a client, which continues
	// after a restart.
	Session func(ctx context.Context, client, id string) (*agent.Session, error)
	// Sandbox reports whether commands can run in the sandbox here.
	Sandbox bool
	// Gone reports whether the folder is not the one that was opened any more, or
	// its journal takes no more records: the next event opens it again.
	// Default: never.
	Gone func() bool

	mu   sync.Mutex // never held across a wait
	left []string   // transactions of an earlier process in which calls wait beside others

	uncommitted []*agent.Txn // their commits wait for an approval, under mu

	observing atomic.Int32 // observed uses that are at work
}

// Server has the sessions of all clients. Make one with New.
type Server struct {
	program string // path of the command remit
	open    func(ctx context.Context, dir string) (*Workspace, error)

	mu       sync.Mutex // never held across a wait
	sessions map[string]*session
	tokens   map[string]*call   // sandboxed commands that wait for their process
	carried  map[string]Carried // by key of a session that has not begun here
	closed   bool

	pending sync.WaitGroup // commits that wait for a command in the background
	tell    func(error)    // tells the operator what no event could be told
}

// New returns a server. program is the path of the command remit, which shows
// sandboxed commands (remit exec --call). New calls open for the folder of each
// new session; open returns the same workspace for the same folder. tell
// receives errors that no answer can report; nil: they are dropped.
func New(program string, tell func(error), open func(ctx context.Context, dir string) (*Workspace, error)) *Server {
	if tell == nil {
		tell = func(error) {}
	}
	return &Server{program: program, tell: tell, open: open, sessions: map[string]*session{}, tokens: map[string]*call{}, carried: map[string]Carried{}}
}

// errClosed says that the server has ended.
var errClosed = errors.New("remit is ending; try again")

// Handle answers one event. project is the folder of the project, if the client
// tells it; otherwise the agent's folder at the first event of the session
// counts. Handle returns when the client may go on. It never returns an Allow
// that the policy did not give.
func (s *Server) Handle(ctx context.Context, c Client, e Event, project string) Answer {
	one, err := s.session(ctx, c, e, project)
	if err == nil && one.space.Gone != nil && one.space.Gone() {
		_ = s.End(ctx, c.Name, e.Session) // its folder is gone, and what it did there
		one, err = s.session(ctx, c, e, project)
	}
	if err != nil {
		return Answer{Verdict: Deny, Reason: "remit cannot decide this call, so it does not run: " + err.Error()}
	}
	switch e.Moment {
	case PromptStarts:
		err = one.prompts(ctx, e)
	case BeforeTool:
		return one.before(ctx, e)
	case AfterTool:
		return one.after(ctx, e)
	case PromptEnds:
		err = one.clientEnds(ctx, e.Quiet)
	case SessionEnds:
		err = one.sessionEnds(ctx)
		s.drop(one)
	case SessionStarts, OtherMoment:
	}
	if err != nil {
		return Answer{Verdict: Deny, Reason: err.Error()}
	}
	return Answer{}
}

// session returns the session of an event, and makes it if it is new.
func (s *Server) session(ctx context.Context, c Client, e Event, project string) (*session, error) {
	key := c.Name + "\x00" + e.Session
	s.mu.Lock()
	one, closed := s.sessions[key], s.closed
	if one == nil && !closed {
		one = &session{server: s, client: c, id: e.Session, key: key, opened: make(chan struct{}), open: map[string]*call{}, waiting: map[string]waiting{}, asked: map[string]bool{}, prompted: map[string]string{}, behind: map[*call]bool{}}
		s.sessions[key] = one
		s.mu.Unlock()
		one.begin(ctx, e, project)
		if one.failed != nil {
			s.drop(one)
		}
	} else {
		s.mu.Unlock()
	}
	if closed {
		return nil, errClosed
	}
	select {
	case <-one.opened:
		return one, one.failed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin opens a new session in its workspace.
func (one *session) begin(ctx context.Context, e Event, project string) {
	defer close(one.opened)
	dir := project
	if dir == "" {
		dir = e.Dir
	}
	if !filepath.IsAbs(dir) {
		one.failed = fmt.Errorf("the client names no folder of a project (%q)", dir)
		return
	}
	ctx = context.WithoutCancel(ctx)
	if one.space, one.failed = one.server.open(ctx, resolved(dir)); one.failed != nil {
		return
	}
	if one.agent, one.failed = one.space.Session(ctx, one.client.Name, one.id); one.failed != nil {
		return
	}
	one.server.carry(one)
	if err := one.recall(ctx, e); err != nil { // calls ask anew, and a prompt can have two transactions
		one.server.tell(fmt.Errorf("what session %s had open before could not be found: %w", one.id, err))
	}
}

func (s *Server) drop(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[one.key] == one {
		delete(s.sessions, one.key)
	}
}

// Settle ends the prompts of a workspace, so that a person can revert them: a
// client that was interrupted reports no end. A use that the client still works
// on counts as ended, and later uses belong to a new transaction.
func (s *Server) Settle(ctx context.Context, dir string) (err error) {
	dir = resolved(dir)
	s.mu.Lock()
	var all []*session
	for _, one := range s.sessions {
		all = append(all, one)
	}
	s.mu.Unlock()
	for _, one := range all {
		<-one.opened
		if one.failed == nil && one.space.Dir == dir {
			err = errors.Join(err, one.promptEnds(ctx))
		}
	}
	return err
}

// End ends the open uses and the prompt of a session whose client has ended.
func (s *Server) End(ctx context.Context, client, id string) error {
	s.mu.Lock()
	one := s.sessions[client+"\x00"+id]
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	<-one.opened
	if one.failed != nil {
		return nil
	}
	err := one.sessionEnds(ctx)
	s.drop(one)
	return err
}

// Agent returns the session of a client's session that is open, or nil.
func (s *Server) Agent(client, id string) *agent.Session {
	s.mu.Lock()
	one := s.sessions[client+"\x00"+id]
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	<-one.opened
	return one.agent
}

// Close ends all sessions and refuses later events. It waits for their calls.
func (s *Server) Close(ctx context.Context) (err error) {
	s.mu.Lock()
	s.closed = true
	var all []*session
	for _, one := range s.sessions {
		all = append(all, one)
	}
	s.mu.Unlock()
	for _, one := range all {
		<-one.opened
		if one.failed == nil {
			err = errors.Join(err, one.sessionEnds(ctx))
		}
		s.drop(one)
	}
	s.pending.Wait()
	return err
}

// Idle reports whether the server has no session.
func (s *Server) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions) == 0
}

// errNoCommand says that a token names no command that waits.
var errNoCommand = errors.New("no command waits under this token: a coding agent starts it, and only once")

// Attach runs the sandboxed command that waits under a token for the process
// that shows it. It returns as soon as the command has the process; the exit comes on shown.Exit.
func (s *Server) Attach(token string, shown *Command) error {
	s.mu.Lock()
	c := s.tokens[token]
	delete(s.tokens, token)
	s.mu.Unlock()
	if c == nil {
		return errNoCommand
	}
	select {
	case <-c.done:
		return errNoCommand
	case c.attach <- shown:
		c.attached.Store(true)
		return nil
	}
}

// expect gives a sandboxed command its token.
func (s *Server) expect(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.token = random()
	s.tokens[c.token] = c
}

// forget takes the token of a command back.
func (s *Server) forget(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, c.token)
}
