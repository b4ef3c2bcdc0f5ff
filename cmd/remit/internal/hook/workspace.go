package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/hookclient"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// daemon has the workspaces of the resident process.
type daemon struct {
	app  *cli.App
	log  *slog.Logger
	home string

	mu     sync.Mutex // held while a workspace opens: two of one folder must not
	spaces map[string]*openSpace
	gone   []*openSpace // whose folders were deleted or replaced

	policy *agentPolicy
	settle func(ctx context.Context, dir string) error // ends the prompts of a workspace
}

// openSpace is an open workspace with what Close closes.
type openSpace struct {
	*hooks.Workspace
	journal journal.Journal
	kept    *process.Snapshotter
	stop    func() // ends the work for other nodes
}

func newDaemon(a *cli.App, log *slog.Logger, home string) *daemon {
	policy := &agentPolicy{log: log, home: home, now: a.Host.Now}
	return &daemon{app: a, log: log, home: home, spaces: map[string]*openSpace{}, policy: policy}
}

// workspace opens the workspace of a folder, once.
func (d *daemon) workspace(ctx context.Context, dir string) (*hooks.Workspace, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.spaces[dir]; known != nil {
		if !known.Gone() {
			return known.Workspace, nil
		}
		d.gone = append(d.gone, known) // sessions still use it
		delete(d.spaces, dir)
	}
	opened, err := d.openWorkspace(ctx, dir)
	if err != nil {
		return nil, err
	}
	d.spaces[dir] = opened
	return opened.Workspace, nil
}

func (d *daemon) openWorkspace(ctx context.Context, dir string) (_ *openSpace, err error) {
	at := state.Workspace{Dir: dir, Sandbox: "strict", GitAuthor: true}
	if err := at.Find(d.app); err != nil {
		return nil, err
	}
	if err := at.CheckStateOutside([]string{dir}); err != nil {
		return nil, err
	}
	if err := d.policy.refresh(); err != nil {
		return nil, err
	}
	j, err := at.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.Close())
		}
	}()
	if err := approval.Announce(ctx, &at, j); err != nil {
		return nil, err
	}
	programs, err := startup.Programs(&at, j)
	if err != nil {
		return nil, err
	}
	near, err := web.New(web.Options{})
	if err != nil {
		return nil, err
	}
	kept, err := process.NewSnapshotter(process.SnapshotConfig{Dir: filepath.Join(at.StateDir, "kept"), Watch: true}) // elsewhere than on Linux, all names are looked at
	if err != nil {
		return nil, err
	}
	rt, err := agent.New(
		agent.Root(state.WorkspaceRoot, dir), agent.Policy(&d.policy.engine), agent.Journal(j), agent.Host(d.app.Host), agent.Log(d.log),
		agent.Driver(programs), agent.Driver(near), agent.Driver(kept), agent.Tools(hooks.Tools()...), agent.SuspendForApproval(),
		agent.Limits(tool.Limits{ClaimTimeout: 5 * time.Second}),
	)
	if err != nil {
		return nil, err
	}
	was, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	failed := new(atomic.Bool)
	journal.OnFailure(j, func(why error) {
		d.log.Warn("the journal takes no more records; the next event opens it again", "folder", dir, "error", why)
		failed.Store(true)
	})
	space := &hooks.Workspace{
		Dir: dir, Runtime: rt, Sandbox: d.confines(ctx, dir),
		Session: func(ctx context.Context, client, id string) (*agent.Session, error) {
			return d.session(ctx, rt, dir, client, id)
		},
		Gone: func() bool { // with a journal that takes no more records, it must be opened again too
			is, err := os.Stat(dir)
			return failed.Load() || err != nil || !os.SameFile(was, is)
		},
	}
	asked := startup.Asked{App: d.app, Place: at, Journal: j, EndPrompts: func(context.Context) error { return nil }} // no session is open yet
	if _, err := asked.Do(ctx); err != nil {                                                                          // before recovery adopts what an earlier process left of it
		d.log.Warn("what another node asked for could not be done", "error", err)
	}
	d.recover(ctx, space)
	asked.EndPrompts = func(ctx context.Context) error { return d.settle(ctx, dir) }
	return &openSpace{space, j, kept, asked.Serve(ctx)}, nil
}

// recover settles the calls of an earlier resident process.
func (d *daemon) recover(ctx context.Context, space *hooks.Workspace) {
	settled, err := space.Recover(ctx, d.app.Host.Now())
	if err != nil {
		d.log.Warn("a part of what an earlier process left could not be settled", "error", err)
	}
	for _, s := range settled {
		d.log.Info("a call that ended with its process is settled", "call", s.Call, "as", s.Outcome)
	}
}

// session opens the session of a client's session, or continues it: its labels
// and counts survive this process. It decides by the policy as its files are now.
func (d *daemon) session(ctx context.Context, rt *agent.Runtime, dir, client, id string) (*agent.Session, error) {
	if err := d.policy.refresh(); err != nil {
		return nil, err
	}
	tokens := filepath.Join(d.home, filepath.FromSlash(hookclient.Folder), "sessions")
	if err := os.MkdirAll(tokens, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(tokens, agentguard.FileName(client, id))
	token, err := startup.ReadToken(file)
	if err == nil {
		s, err := rt.ResumeSession(ctx, token)
		if err == nil {
			err = d.checkFolder(ctx, s, rt, dir)
			if err == nil {
				return s, nil
			}
		}
		if !errors.Is(err, agent.ErrUnknownToken) {
			return nil, err
		}
		if err := os.Remove(file); err != nil { // of a journal that is gone
			return nil, err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	s, err := rt.Session(ctx, perm.Principal{ID: client, Kind: "agent"})
	if err != nil {
		return nil, err
	}
	return s, startup.WriteToken(file, s.Token())
}

// checkFolder refuses a session whose folder was replaced: it has nothing of the
// new folder. Another session in its place would lose its labels without the
// knowledge of a person.
func (d *daemon) checkFolder(ctx context.Context, s *agent.Session, rt *agent.Runtime, dir string) error {
	same, err := state.BeganIn(ctx, d.app, rt.Journal(), s.ID(), dir)
	if err == nil && !same {
		err = fmt.Errorf("the folder %s was deleted and made again after this session of the agent began. Repeating the call cannot help. A person must begin a new session of the agent", cli.Quote(dir))
	}
	return err
}

func (d *daemon) close() (err error) {
	d.mu.Lock()
	all := d.gone
	for _, dir := range slices.Sorted(maps.Keys(d.spaces)) {
		all = append(all, d.spaces[dir])
	}
	d.mu.Unlock()
	for _, s := range all {
		s.stop()
		err = errors.Join(err, s.Runtime.Close(), s.kept.Close(), s.journal.Close())
	}
	return err
}
