package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// Option configures a Runtime.
type Option func(*config) error

type config struct {
	services    pipeline.Services
	tools       []tool.Tool
	roots       []rootConfig
	journal     journal.Journal
	schemes     []revert.Scheme
	log         *slog.Logger
	limits      tool.Limits
	abandon     AbandonedAction
	customizers map[string]ToolCustomizer
}

type rootConfig struct {
	name, path string
	moved      bool
}

// Tools adds tools. The option may be repeated.
func Tools(tools ...tool.Tool) Option {
	return func(c *config) error {
		c.tools = append(c.tools, tools...)
		return nil
	}
}

// Root names an existing folder that calls can be granted access to. The
// runtime reverts calls of earlier sessions in it only if their record names
// the same folder; see MovedRoot.
func Root(name, path string) Option { return rootOption(name, path, false) }

// MovedRoot is Root, and asserts that every recorded root of that name is at
// path now: moved, copied, or restored from a backup. Without it Revert, Redo,
// Preview, Diff and Recover look for the folder that a session's record names,
// and refuse another one. The version tokens of files still protect each path:
// if the content is not what the call left, the path has a conflict. The report
// names the folders that only this assertion identifies.
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
		if name == perm.OutsideRoot {
			return fmt.Errorf("root %q: the name means files outside every root; choose another one", name)
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

// Policy sets the policy engine. Default: the workspace policy.
func Policy(e perm.Engine) Option {
	return func(c *config) error {
		if e == nil {
			return errors.New("the policy is nil; leave the option out for the default")
		}
		c.services.Engine = e
		return nil
	}
}

// Approver sets the approver for accesses that the policy asks about. Default:
// none, and an ask is a denial.
func Approver(a ctxperm.Approver) Option {
	return func(c *config) error {
		c.services.Approver = a
		return nil
	}
}

// SuspendForApproval lets calls wait for an approval if the policy asks and
// there is no approver. Such a call ends pending, with its approval request on
// the journal. After Runtime.Answer, in this process or another, Txn.Resume
// continues it.
func SuspendForApproval() Option {
	return func(c *config) error {
		c.services.Wait = true
		return nil
	}
}

// Journal sets the journal of all records. Default: journal.Memory, which does
// not survive the process. The runtime does not close it.
func Journal(j journal.Journal) Option {
	return func(c *config) error {
		if j == nil {
			return errors.New("the journal is nil; leave the option out for one in memory")
		}
		c.journal = j
		return nil
	}
}

// Scheme adds a kind of resource that the runtime can restore, for handles
// other than files.
func Scheme(s revert.Scheme) Option {
	return func(c *config) error {
		if s == nil {
			return errors.New("the scheme is nil; leave the option out")
		}
		c.schemes = append(c.schemes, s)
		return nil
	}
}

// Driver provides the handles of one package with their resources, and adds the
// kinds of resource that it can restore. The runtime does not close it.
func Driver(d ctxperm.Driver) Option {
	return func(c *config) error {
		if d == nil {
			return errors.New("the driver is nil; leave the option out")
		}
		c.services.Drivers = append(c.services.Drivers, d)
		c.schemes = append(c.schemes, d.Schemes()...)
		return nil
	}
}

// Log sets the logger for messages to the operator. Default: slog.Default.
func Log(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return errors.New("the logger is nil; leave the option out for slog.Default")
		}
		c.log = l
		return nil
	}
}

// Limits bounds each call; see tool.Limits for the defaults.
func Limits(l tool.Limits) Option {
	return func(c *config) error {
		c.limits = l
		return pipeline.CheckLimits(l)
	}
}

// OnWaiting sets a listener for approval requests on the journal that wait for
// a person, once they are durable. The runtime calls it on the calls' own
// goroutines, several at once, so it should return at once.
func OnWaiting(listen func(ctxperm.ApprovalRequest)) Option {
	return func(c *config) error {
		c.services.Waiting = listen
		return nil
	}
}

// OnProgress sets a listener for the reports of ToolContext.Progress. The
// runtime calls it on the calls' own goroutines, several at once, so it should
// return at once.
func OnProgress(listen func(tool.Progress)) Option {
	return func(c *config) error {
		c.services.Progress = listen
		return nil
	}
}

// Filters appends filters around the calls of the runtime: filter.Filter says
// what they can do, and package tool/filter has ready ones. They see calls in
// this order, and results and outcomes in reverse order. Each name must be
// unique. The runtime calls no filter when it reverts a call, or when it
// answers a repeated call ID from the journal.
func Filters(filters ...filter.Filter) Option {
	return func(c *config) error {
		for _, f := range filters {
			if err := f.Check(); err != nil {
				return err
			}
			if slices.ContainsFunc(c.services.Filters, func(other filter.Filter) bool { return other.Name == f.Name }) {
				return fmt.Errorf("two filters are named %q", f.Name)
			}
			c.services.Filters = append(c.services.Filters, f)
		}
		return nil
	}
}

// AbandonedAction says what Runtime.Recover does with an abandoned transaction.
// The zero value is LeaveOpen.
type AbandonedAction uint8

// The values of AbandonedAction.
const (
	LeaveOpen       AbandonedAction = iota // the transaction stays open, with its claims, until an operator reverts it
	RevertAbandoned                        // the transaction is reverted
)

// OnAbandoned sets what Runtime.Recover does with abandoned transactions, once
// it has settled their calls. Default: LeaveOpen. A transaction with a call
// that waits for an approval always stays open, because it is not given up.
func OnAbandoned(a AbandonedAction) Option {
	return func(c *config) error {
		if a > RevertAbandoned {
			return errors.New("OnAbandoned takes LeaveOpen or RevertAbandoned")
		}
		c.abandon = a
		return nil
	}
}

// Host replaces the clock, the randomness and the scheduling points of the
// machine, for tests and simulations.
func Host(h revert.Host) Option {
	return func(c *config) error {
		if h == nil {
			return errors.New("the host is nil; leave the option out for the machine")
		}
		c.services.Host = h
		return nil
	}
}
