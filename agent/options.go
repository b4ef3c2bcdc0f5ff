package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// Option configures a Runtime.
type Option func(*config) error

type config struct {
	host     host.Host
	tools    []tool.Tool
	roots    []rootConfig
	engine   perm.Engine
	approver ctxperm.Approver
	wait     bool
	journal  journal.Journal
	schemes  []revert.Scheme
	drivers  []any
	log      *slog.Logger
	limits   tool.Limits
	abandon  AbandonedAction
	progress func(tool.Progress)
	waiting  func(ctxperm.ApprovalRequest)
	filters  []tool.Filter
	tailored map[string]ToolCustomizer
}

type rootConfig struct {
	name, path string
	moved      bool
}

// Tools adds tools. May be given more than once.
func Tools(tools ...tool.Tool) Option {
	return func(c *config) error {
		c.tools = append(c.tools, tools...)
		return nil
	}
}

// Root names an existing folder that calls may be granted parts of. Calls of earlier
// sessions are taken back in it only if it is the folder that their record names; see
// MovedRoot.
func Root(name, path string) Option { return rootOption(name, path, false) }

// MovedRoot is Root, and says in the name of the person who asks that the folder of
// every root of that name on the journal is at path now: moved, copied, or restored
// from a backup. Without it Undo, Redo, Preview, Diff and Recover look for the folder
// that a session's record names, and refuse another one. The versions of files still
// guard each path: a path whose content is not what the call left is a conflict. The
// report says which folders are there by this word alone.
func MovedRoot(name, path string) Option { return rootOption(name, path, true) }

func rootOption(name, path string, moved bool) Option {
	return func(c *config) error {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("root %q: %w", name, err)
		}
		if _, err := perm.FileResource(name, "."); err != nil {
			return fmt.Errorf("root %q: %w", name, err)
		}
		for _, r := range c.roots {
			if r.name == name {
				return fmt.Errorf("two roots are named %q", name)
			}
		}
		c.roots = append(c.roots, rootConfig{name, abs, moved})
		return nil
	}
}

// Policy is who decides; the default is the workspace policy.
func Policy(e perm.Engine) Option {
	return func(c *config) error {
		if e == nil {
			return errors.New("the policy is nil; leave the option out for the default")
		}
		c.engine = e
		return nil
	}
}

// Approver is who is asked where the policy asks; without one an ask is denied.
func Approver(a ctxperm.Approver) Option {
	return func(c *config) error {
		c.approver = a
		return nil
	}
}

// SuspendForApproval lets calls wait for approval where the policy asks and no approver is
// given: they end pending, with their question on the journal, and go on by
// Txn.Resume once Runtime.Answer was called, in this process or another.
func SuspendForApproval() Option {
	return func(c *config) error {
		c.wait = true
		return nil
	}
}

// Journal is where everything is recorded; the default is journal.Memory, which
// does not survive the process. The runtime does not close it.
func Journal(j journal.Journal) Option {
	return func(c *config) error {
		if j == nil {
			return errors.New("the journal is nil; leave the option out for one in memory")
		}
		c.journal = j
		return nil
	}
}

// Scheme adds a kind of resource that can be restored, for handles other than
// files.
func Scheme(s revert.Scheme) Option {
	return func(c *config) error {
		c.schemes = append(c.schemes, s)
		return nil
	}
}

// Driver gives the handles of one package what they work with, and adds the kinds
// of resource that it can restore. The runtime does not close it.
func Driver(d ctxperm.Driver) Option {
	return func(c *config) error {
		if d == nil {
			return errors.New("the driver is nil; leave the option out")
		}
		c.drivers = append(c.drivers, d)
		c.schemes = append(c.schemes, d.Schemes()...)
		return nil
	}
}

// Log is where the runtime says what a person should know; the default is
// slog.Default.
func Log(l *slog.Logger) Option {
	return func(c *config) error {
		c.log = l
		return nil
	}
}

// Limits bound each call; see tool.Limits for the defaults.
func Limits(l tool.Limits) Option {
	return func(c *config) error {
		c.limits = l
		return l.Check()
	}
}

// OnWaiting listens to questions that wait on the journal: each call that a person
// elsewhere has to approve, once its question is durable. It is called on the calls'
// own goroutines, several at once, and should return at once.
func OnWaiting(listen func(ctxperm.ApprovalRequest)) Option {
	return func(c *config) error {
		c.waiting = listen
		return nil
	}
}

// OnProgress listens to what tools report by ToolContext.Progress. It is called
// on the calls' own goroutines, several at once, and should return at once.
func OnProgress(listen func(tool.Progress)) Option {
	return func(c *config) error {
		c.progress = listen
		return nil
	}
}

// Filters adds filters around the calls of the runtime, after those that are there:
// tool.Filter says what they can do, and package tool/filter has ready ones. They are
// asked in this order, and see results and outcomes in the opposite one. Two cannot
// have one name. No filter is asked when a call is taken back, nor when a call id
// that was used before is answered from the journal.
func Filters(filters ...tool.Filter) Option {
	return func(c *config) error {
		for _, f := range filters {
			if err := f.Check(); err != nil {
				return err
			}
			if slices.ContainsFunc(c.filters, func(other tool.Filter) bool { return other.Name == f.Name }) {
				return fmt.Errorf("two filters are named %q", f.Name)
			}
			c.filters = append(c.filters, f)
		}
		return nil
	}
}

// AbandonedAction is what becomes of an open transaction whose process is gone. The
// zero Abandoned keeps it.
type AbandonedAction uint8

// What Runtime.Recover does with an abandoned transaction.
const (
	LeaveOpen       AbandonedAction = iota // it stays open, with its claims, until somebody reverts it
	RevertAbandoned                        // it is taken back
)

// OnAbandoned says what Runtime.Recover does with open transactions whose
// process is gone, once it has settled their calls; the default is Keep. One with
// a call that waits for approval is kept in either case: it has not been given
// up.
func OnAbandoned(a AbandonedAction) Option {
	return func(c *config) error {
		if a > RevertAbandoned {
			return errors.New("OnAbandoned takes Keep or Revert")
		}
		c.abandon = a
		return nil
	}
}

// Host runs everything on a given world instead of the real one. Only this module
// can make one: it is the seam for simulation and for tests.
func Host(h host.Host) Option {
	return func(c *config) error {
		c.host = h
		return nil
	}
}
