package approve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// answerFlags holds the flags of approve and deny.
type answerFlags struct {
	startup.Flags
	rememberFlags

	approves, resume bool
	why, question    string
	shown            string // digest of the difference that the person saw
	again            bool   // errChanged is returned: the person sees it again

	// resumeCall resumes the call after its approval.
	resumeCall func(ctx context.Context, f startup.Flags, id string) error
}

// ApproveCommand returns remit approve. Resume runs an approved call.
//
//nolint:revive // beside DenyCommand
func ApproveCommand(a *cli.App, resume func(ctx context.Context, f startup.Flags, id string) error) *cobra.Command {
	f := answerFlags{approves: true, resumeCall: resume}
	cmd := &cobra.Command{
		Use: "approve [CALL | TXN]", Short: "Approve a call or a commit that waits",
		Long: "Approves a call that waits. The answer is recorded in your name, as the operating system reports it. CALL is the ID of\n" +
			"the call, or the first characters of it. TXN is the ID of a transaction whose commit waits. Without an ID, the command\n" +
			"lists what waits. To approve the changes of a program or a commit, name the request that you read with --request;\n" +
			"remit pending with the ID prints it.\n\n" +
			"If a server runs the call, the call continues by itself. Otherwise remit resume continues it, or --resume does so\n" +
			"immediately and commits a transaction of one call. The approver must not be the person who asked, and the terminal\n" +
			"must not be one that the agent started. remit approval shows and changes these rules.\n\n" +
			"Exit codes: 0 approved (with --resume, the exit code of remit resume); 2 usage, a call that does not wait, or an\n" +
			"expired request; 3 remit accepts no approvals from here.",
		Args: cli.WantIDs(0, 1, "the id of one call or transaction"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(checkDigests(cmd), f.check(), f.checkResume(cmd.Flags().Changed)); err != nil {
				return err
			}
			return decide(cmd.Context(), a, &f, strings.Join(args, ""))
		},
	}
	f.flags(cmd)
	f.rememberFlags.flags(cmd)
	cmd.Flags().StringVar(&f.shown, "diff", "", "`DIGEST` of the difference that you read, from remit pending with the ID; remit refuses the answer if the call would make another one now")
	cmd.Flags().BoolVar(&f.resume, "resume", false, "continue the call immediately, with the other flags of remit resume")
	startup.AddResumeFlags(cmd, &f.Flags)
	cmd.Flags().StringVar(&f.AtEnd, "at-end", "", "with --resume: `END` of the transaction: commit, revert or leave-open (default: commit for a transaction of one call, else leave-open)")
	return cmd
}

// DenyCommand returns remit deny.
func DenyCommand(a *cli.App) *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use: "deny [CALL | TXN]", Short: "Reject a call or a commit that waits",
		Long: "Rejects a call that waits. The answer is recorded in your name, as the operating system reports it. CALL is the ID of\n" +
			"the call, or the first characters of it. TXN is the ID of a transaction whose commit waits: its next commit reverts it.\n" +
			"Without an ID, the command lists what waits. The agent gets the reason. A rejection is final.",
		Args: cli.WantIDs(0, 1, "the id of one call or transaction"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDigests(cmd); err != nil {
				return err
			}
			return decide(cmd.Context(), a, &f, strings.Join(args, ""))
		},
	}
	f.flags(cmd)
	return cmd
}

// checkDigests refuses an empty digest: nothing would be compared.
func checkDigests(cmd *cobra.Command) error {
	for _, name := range []string{"request", "diff"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return cli.UsageProblem("--" + name + " is empty; is a variable not set?")
		}
	}
	return nil
}

func (f *answerFlags) flags(cmd *cobra.Command) {
	state.AddFlags(cmd, &f.Workspace)
	cmd.Flags().StringVar(&f.why, "why", "", "`TEXT` with the reason, for the record")
	output := "write one JSON object"
	if f.approves {
		output += "; with --resume, also one for the call and one for its transaction"
	}
	cmd.Flags().BoolVar(&f.JSON, "json", false, output)
	cmd.Flags().StringVar(&f.question, "request", "", "`DIGEST` of the approval request that you read, from remit pending; remit refuses the answer if the call has another request now")
}

// checkResume rejects flags that need --resume.
func (f *answerFlags) checkResume(changed func(string) bool) error {
	if f.resume {
		end := f.AtEnd
		if end == "" {
			f.AtEnd = "leave-open"
		}
		err := f.Check()
		f.AtEnd = end
		return err
	}
	for _, name := range []string{"at-end", "policy", "root", "database", "sandbox"} {
		if changed(name) {
			return cli.UsageProblem("--" + name + " is of --resume")
		}
	}
	return nil
}

// decide records an answer, or lists the pending calls.
func decide(ctx context.Context, a *cli.App, f *answerFlags, id string) error {
	if id == "" {
		return listPending(ctx, a, &f.Workspace, "", false, f.JSON)
	}
	who, err := a.Person()
	if err != nil {
		return err
	}
	if isTxn(id) {
		return answerCommit(ctx, a, f, id, who)
	}
	at := f.Workspace // an answer does not need the folders of roots
	at.Moved = nil
	var w callview.Pending
	err = startup.WithRuntime(ctx, a, &at, func(rt *agent.Runtime) (err error) {
		f.HintFlags = at.HintFlags
		w, err = recordAnswer(ctx, a, rt, f, &at, id, who)
		return err
	})
	if err != nil || !f.resume {
		return err
	}
	if w.Alive {
		if !f.JSON {
			_, _ = fmt.Fprintln(a.Out, "its process runs, and continues the call itself")
		}
		return nil
	}
	if f.AtEnd == "" {
		f.AtEnd = map[bool]string{true: "commit", false: "leave-open"}[len(w.Txn.Calls) == 1]
	}
	return f.resumeCall(ctx, f.Flags, w.Call.Ref.Call)
}

// recordAnswer records an answer and reports it.
func recordAnswer(ctx context.Context, a *cli.App, rt *agent.Runtime, f *answerFlags, at *state.Workspace, id, who string) (w callview.Pending, err error) {
	if id, err = pendingID(ctx, rt.Journal(), id); err != nil {
		return w, err
	}
	if w.Txn, w.Call, err = revert.LoadCall(ctx, rt.Journal(), id); err != nil {
		return w, err
	}
	if w.Alive, err = journal.LooksAlive(ctx, rt.Journal(), w.Txn.Owner); err != nil {
		return w, err
	}
	if f.approves {
		rules, err := approval.RulesFor(ctx, at, rt.Journal(), id)
		if err != nil {
			return w, err
		}
		if err := approval.CheckApprover(a, at, rules, w.Call); err != nil {
			return w, err
		}
	}
	if f.approves && f.question == "" && w.Call.Waits() && w.Call.Asked.Purpose != "" {
		return w, &cli.Problem{
			Code: cli.ExitUsage, What: "the answer was not taken", Why: "the call waits with the changes that it wants to make: an approval names the request that you looked at",
			Fix: at.Hint("pending", id) + " shows it, with the command that approves it",
		}
	}
	if f.approves {
		if err = checkShown(ctx, a, at, rt.Journal(), w.Call, w.Txn.Session, f.shown); errors.Is(err, errChanged) && !f.again {
			err = &cli.Problem{Code: cli.ExitUsage, What: "the answer was not taken", Why: "the call would change something else now than you saw", Fix: at.Hint("pending", id) + " shows it"}
		}
		if err != nil {
			return w, err
		}
		if f.again && w.Call.Waits() && w.Call.Answered == nil && w.Call.Asked.Digest != f.question {
			return w, errChanged
		}
	}
	reply := agent.Answer{Call: id, Approved: f.approves, By: who, Why: f.why, RequestDigest: f.question}
	f.byPolicy(w.Call)
	grant, err := f.answer(ctx, rt, reply)
	if err != nil {
		f.writeOther(ctx, a, rt, id)
		return w, answerProblem(err, at, id)
	}
	node, err := at.NodeOf(ctx, rt.Journal(), w.Txn.Session)
	if err != nil {
		return w, err
	}
	said := map[bool]string{true: "approved", false: "denied"}[f.approves]
	if f.JSON {
		a.WriteJSON(answerOutput{id, said, who, f.why, grant})
		return w, nil
	}
	switch {
	case f.resume:
		_, _ = fmt.Fprintf(a.Out, "%s by %s\n", said, cli.Printable(who))
	case w.Alive:
		_, _ = fmt.Fprintf(a.Out, "%s by %s; the process that asked continues the call\n", said, cli.Printable(who))
	case w.Txn.Prompt != nil && f.approves: // a new resident process finds it
		_, _ = fmt.Fprintf(a.Out, "%s by %s; it runs when the agent repeats it\n", said, cli.Printable(who))
	default:
		_, _ = fmt.Fprintf(a.Out, "%s by %s; resume the call %s: %s\n", said, cli.Printable(who), withTheRest, at.HintOn(node, "resume", id))
		_, _ = fmt.Fprintf(a.Out, "its transaction %s stays open; to end it too, add --at-end commit or --at-end revert\n", w.Txn.ID)
	}
	if grant != "" {
		_, _ = fmt.Fprintf(a.Out, "remembered as %s; to take it away: %s\n", grant, at.Hint("grants", "revoke", grant))
	}
	return w, nil
}

// writeOther writes, with --json, the rejection that counts in place of an
// approval.
func (f *answerFlags) writeOther(ctx context.Context, a *cli.App, rt *agent.Runtime, id string) {
	_, c, err := revert.LoadCall(ctx, rt.Journal(), id)
	if err != nil || !f.JSON || !f.approves || c.Answered == nil || c.Answered.Approved || c.Asked == nil || c.Answered.Digest != c.Asked.Digest {
		return // the problem says all
	}
	a.WriteJSON(answerOutput{id, "denied", c.Answered.By, c.Answered.Why, ""})
}

// answerProblem returns the problem of an answer that does not count.
func answerProblem(err error, p *state.Workspace, call string) error {
	for _, kind := range []error{tool.ErrInvalid, tool.ErrDenied, revert.ErrOutcomeKnown} {
		if errors.Is(err, kind) {
			why := strings.TrimSuffix(err.Error(), ": "+kind.Error())
			return &cli.Problem{Code: cli.ExitUsage, What: "the answer was not taken", Why: why, Fix: p.Hint("show", call) + " tells how it stands"}
		}
	}
	return err
}

// withTheRest says which flags continue a run that ended.
const withTheRest = "with the --policy, --database and --services of its run"

// answerOutput is the JSON form of an answer.
type answerOutput struct {
	Call string `json:"call"`
	As   string `json:"as"` // approved or denied; applied or absent
	By   string `json:"by"`
	Why  string `json:"why"`

	Grant string `json:"grant,omitempty"` // remembered approval for later calls
}
