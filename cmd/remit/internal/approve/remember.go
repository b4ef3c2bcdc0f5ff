package approve

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm"
)

// rememberFlags are the flags that say which later calls an approval covers.
type rememberFlags struct {
	scope     string
	span      time.Duration
	sameInput bool
}

func (r *rememberFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.scope, "remember", "", "also approve later calls of this `SCOPE`, session or always: calls of the same tool, for the same reasons, without other accesses")
	f.DurationVar(&r.span, "for", 0, "`TIME` for which the approval is remembered, such as 30m (default: 24h)")
	f.BoolVar(&r.sameInput, "same-input", false, "remember the approval only for the same arguments; without an access of its own, a call always needs the same ones")
}

func (r *rememberFlags) check() error {
	switch {
	case r.scope != "" && r.scope != "session" && r.scope != "always":
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--remember %q is not one of the ways to remember", r.scope), Fix: "valid are session, always"}
	case r.scope == "" && (r.span != 0 || r.sameInput):
		return cli.UsageProblem("--for and --same-input say what is remembered, so they need --remember session or --remember always")
	case r.span < 0:
		return cli.UsageProblem(fmt.Sprintf("--for %s is over before it begins", r.span))
	}
	return nil
}

// answer records an answer and the remembered approval. It returns the ID of
// the latter.
func (r *rememberFlags) answer(ctx context.Context, rt *agent.Runtime, reply agent.Answer) (grant string, err error) {
	if r.scope == "" {
		return "", rt.Answer(ctx, reply)
	}
	how := ctxperm.RememberScope{Always: r.scope == "always", For: r.span, SameInput: r.sameInput}
	return rt.RememberApproval(ctx, reply, how)
}
