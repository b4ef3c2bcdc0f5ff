package console

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/console"
	"github.com/remit-dev/remit/revert"
)

// diagnose checks what remit doctor checks, what is past retention, and which
// gateway has servers.
func (f *flags) diagnose(ctx context.Context, a *cli.App, rt *agent.Runtime) (all []console.Check, err error) {
	tell := func(where, name, is, what, fix string) {
		all = append(all, console.Check{Where: where, Name: name, State: is, What: what, Fix: fix})
	}
	at := startup.Flags{Workspace: f.Workspace, Policies: f.policies}
	if err := f.verbs.Diagnose(ctx, a, &at, tell); err != nil {
		return nil, err
	}
	f.checkRetention(ctx, rt, tell)
	if config, err := os.ReadFile(upstream.NoteFile(&f.Workspace)); err == nil {
		name := strings.TrimSpace(string(config))
		tell("gateway", "servers", "ok", "those of "+name+": new and changed tools wait there until a person accepts them", "")
		all[len(all)-1].Fix = "to see them: " + f.Hint("gateway", "accept", "--config", name)
	}
	return all, nil
}

// checkRetention reports what remit prune would delete.
func (f *flags) checkRetention(ctx context.Context, rt *agent.Runtime, tell func(where, name, is, what, fix string)) {
	r, err := rt.Prune(ctx, revert.Retention{MaxAge: revert.DefaultKeep, KeepLast: revert.DefaultKeepLast, DryRun: true})
	switch {
	case err != nil:
		tell("journal", "retention", "failed", "what is past retention cannot be told: "+err.Error(), "see what "+f.Hint("fsck")+" finds")
	case r.Txns > 0:
		what := fmt.Sprintf("%s older than 30 days, with up to %s of content", cli.Count(r.Txns, "transaction"), cli.Bytes(r.Content))
		tell("journal", "retention", "weaker", what, "if none of them has to be reverted: "+f.Hint("prune"))
	default:
		tell("journal", "retention", "ok", "nothing is past 30 days", "")
	}
	for _, kept := range r.Kept {
		tell("journal", "retention", "weaker", kept.Txn+" is old and is kept: "+kept.Why, f.Hint("show", kept.Txn)+" shows it")
	}
}
