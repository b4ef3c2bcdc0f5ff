package startup

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm"
)

// newApprover returns the approver of calls for which the policy asks. A nil
// approver denies every ask.
func newApprover(a *cli.App, f *Flags) (ctxperm.Approver, error) {
	mode := f.OnAsk
	if mode == "deny" || mode == "wait" {
		return nil, nil // the process that records the answer checks the settings
	}
	s, err := approval.ReadSettings(f.StateDir)
	if err != nil {
		return nil, err
	}
	switch mode {
	case "approve-unsafe":
		if s.Passphrase != nil {
			return nil, cli.UsageProblem("--on-ask approve-unsafe: approvals need a passphrase here; use prompt or wait")
		}
		who, err := a.Person()
		if err != nil {
			return nil, err
		}
		return ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			return ctxperm.Approve(who), nil
		}), nil
	case "prompt":
		roots, err := rootsOf(a, f.rootWords(), "")
		if err != nil {
			return nil, err
		}
		return approval.NewPrompt(a, s, roots, f.Hint("pending"))
	default:
		return nil, &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("--on-ask %q is not one of the ways to answer", mode),
			Fix: "valid are deny, wait, prompt, approve-unsafe",
		}
	}
}

// Notices returns the notices of a run or of a server. They contain absolute
// paths, as a person can read them in any folder. A server resumes the call
// itself; for a run, the approval command does.
func Notices(a *cli.App, f *Flags) *approval.Notices {
	at := f.anywhere()
	approve := at.approveHint
	if f.Recovers {
		approve = func(call string) string { return at.Hint("approve", call) }
	}
	return approval.NewNotices(a, absolute(f.StateDir), f.Notify, func(call string) string { return at.Hint("pending", call) }, approve)
}
