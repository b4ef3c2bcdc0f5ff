package approve

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

// rememberFlags are the flags that say which later calls an approval covers.
type rememberFlags struct {
	scope     string
	span      time.Duration
	sameInput bool
}

func (r *rememberFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.scope, "remember", "", "also approve later calls of this `SCOPE`, session or always: calls of the same tool, for the same reasons, without other accesses or keys; once: only this call, whatever the policy lets it cover")
	f.DurationVar(&r.span, "for", 0, "`TIME` for which the approval is remembered, such as 30m (default: 24h)")
	f.BoolVar(&r.sameInput, "same-input", false, "remember the approval only for the same arguments; without an access of its own, a call always needs the same ones")
}

func (r *rememberFlags) check() error {
	switch {
	case r.scope != "" && r.scope != "session" && r.scope != "always" && r.scope != "once":
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--remember %q is not one of the ways to remember", r.scope), Fix: "valid are session, always, once"}
	case (r.scope == "" || r.scope == "once") && (r.span != 0 || r.sameInput):
		return cli.UsageProblem("--for and --same-input say what is remembered, so they need --remember session or --remember always")
	case r.span < 0:
		return cli.UsageProblem(fmt.Sprintf("--for %s is over before it begins", r.span))
	}
	return nil
}

// byPolicy remembers an approval for the session if the policy says so, and the
// person does not say more or less.
func (r *rememberFlags) byPolicy(c *revert.Call) {
	var d perm.DecisionRecord
	if r.scope == "" && c.Waits() && json.Unmarshal(c.Asked.Decision, &d) == nil && d.Remember != nil && d.Remember.Scope == perm.RememberSession {
		r.scope = perm.RememberSession
	}
}

// answer records an answer and the remembered approval. It returns the ID of
// the latter.
func (r *rememberFlags) answer(ctx context.Context, rt *agent.Runtime, reply agent.Answer) (grant string, err error) {
	if !reply.Approved || r.scope == "" || r.scope == "once" {
		reply.Once = r.scope == "once"
		return "", rt.Answer(ctx, reply)
	}
	how := ctxperm.RememberScope{Always: r.scope == "always", For: r.span, SameInput: r.sameInput}
	return rt.RememberApproval(ctx, reply, how)
}
