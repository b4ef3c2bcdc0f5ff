package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// PendingCommand returns remit pending.
func PendingCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON, watch bool
	var damaged int64
	cmd := &cobra.Command{
		Use: "pending [CALL | TXN]", Short: "List the calls and commits that wait for approval",
		Long: "Lists the calls that wait for a person: who asks, for what and since when. For a call of a file tool, it shows the\n" +
			"difference that the call makes to the current files. With CALL, the ID of a call or the first characters of it, the\n" +
			"command shows one call with its whole difference. With TXN, it shows a commit that waits, with what the transaction did.\n" +
			"It also lists the reverts and redos that wait between nodes of a shared journal. --discard deletes one that is damaged.\n" +
			"--watch continues until you interrupt it, and reports each call and commit that begins or ends to wait.\n\n" +
			"Exit codes: 0 with or without pending calls; 1 the journal cannot be read; 2 usage.",
		Args: cli.WantIDs(0, 1, "at most one id of a call or a transaction"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch && len(args) > 0 {
				return cli.UsageProblem("--watch tells of all calls and commits: leave the id out")
			}
			if cmd.Flags().Changed("discard") {
				if watch || len(args) > 0 {
					return cli.UsageProblem("--discard deletes a request between nodes: leave the id and --watch out")
				}
				return discard(cmd.Context(), a, &p, damaged, asJSON)
			}
			return listPending(cmd.Context(), a, &p, strings.Join(args, ""), watch, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().StringArrayVar(&p.Moved, "root", nil, "folder of a root, as `NAME=DIR`, for differences, if the folder was moved")
	cmd.Flags().Int64Var(&damaged, "discard", 0, "delete the damaged request `NUMBER` of a shared journal; a correct one is withdrawn by remit revert --withdraw")
	cmd.Flags().BoolVar(&watch, "watch", false, "continue, and report each change")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object per line, for each call and commit")
	return cmd
}

func listPending(ctx context.Context, a *cli.App, p *state.Workspace, id string, watch, asJSON bool) (err error) {
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if watch {
		return watchPending(ctx, a, p, j, asJSON)
	}
	most := approval.ListedLines
	if isTxn(id) {
		if id, err = state.FullID(ctx, j, id); err != nil {
			return err
		}
		return showCommit(ctx, a, p, j, id, asJSON)
	}
	if id != "" {
		if id, err = pendingID(ctx, j, id); err != nil {
			return err
		}
		most = approval.ShownLines
	}
	all, damage := callview.FindPending(ctx, j)
	if id != "" {
		all = slices.DeleteFunc(all, func(w callview.Pending) bool { return w.Call.Ref.Call != id })
		if len(all) == 0 && damage == nil {
			return &cli.Problem{Code: cli.ExitUsage, What: "call " + id + " does not wait", Fix: p.Hint("show", id) + " tells how it stands"}
		}
	}
	if err := writeAll(ctx, a, p, j, all, most, asJSON); err != nil {
		return errors.Join(err, damage)
	}
	var commits []callview.PendingCommit
	if id == "" && damage == nil { // otherwise the same damage
		if commits, damage = callview.FindPendingCommits(ctx, j); damage == nil {
			damage = writeCommits(ctx, a, p, commits, most, asJSON, len(all) > 0)
		}
	}
	asked := 0
	if id == "" && damage == nil {
		asked, damage = writeAsked(ctx, a, p, j, asJSON)
	}
	if len(all)+len(commits)+asked == 0 && damage == nil && !asJSON {
		_, _ = fmt.Fprintln(a.Out, "no call waits for approval")
	}
	return damage
}

// showCommit writes one commit that waits.
func showCommit(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, txn string, asJSON bool) error {
	all, damage := callview.FindPendingCommits(ctx, j)
	all = slices.DeleteFunc(all, func(w callview.PendingCommit) bool { return w.Txn.ID != txn })
	if len(all) == 0 && damage == nil {
		return &cli.Problem{Code: cli.ExitUsage, What: "the commit of transaction " + txn + " does not wait", Fix: p.Hint("log", "--txn", txn) + " tells how it stands"}
	}
	return errors.Join(writeCommits(ctx, a, p, all, approval.ShownLines, asJSON, false), damage)
}

// writeAll writes pending calls.
func writeAll(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, all []callview.Pending, most int, asJSON bool) error {
	tools, err := tool.NewRegistry(state.RecordedTools(a)...)
	if err != nil {
		return err
	}
	for i, w := range all {
		r, err := recordOf(ctx, a, p, j, w, tools, most)
		if err != nil {
			return err
		}
		if asJSON {
			a.WriteJSON(r)
			continue
		}
		if i > 0 {
			_, _ = fmt.Fprintln(a.Out)
		}
		writePending(a.Style(), a.Out, p, r, a.Host.Now())
	}
	return nil
}

// when formats a time with its zone.
func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 -07:00") }

// writePending writes one pending call.
func writePending(p cli.Style, w io.Writer, at *state.Workspace, r PendingRecord, now time.Time) {
	_, _ = fmt.Fprintf(w, "%s %s  %s  %s%s\n", p.Doubt("…"), p.Bold(r.Call), cli.Printable(r.Tool), callview.Arguments(r.Input, nil), notResumed(p, r.State))
	row := func(name, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "  %s %s\n", p.Faint(fmt.Sprintf("%-9s", name)), cli.Printable(text))
		}
	}
	if r.Diff == "" { // nothing else shows the effect of an approval
		row("input", inputText(r.Input, at.Hint("show", r.Call)))
	}
	row("asked by", r.Principal+", in session "+r.Session)
	row("shown to", r.client)
	row("again", r.Earlier)
	for _, why := range r.Reasons {
		row("because", cli.WithPlace(why.Text, why.At))
	}
	for _, access := range r.Access {
		row("touches", access.Action+" "+access.Resource)
	}
	if r.Remember != nil && len(r.Remember.Keys) > 0 {
		row("covers", "also, in this session: "+strings.Join(r.Remember.Keys, ", ")+"; --remember once approves only this call")
	}
	row("since", fmt.Sprintf("%s (%s)", when(r.Since), now.Sub(r.Since).Round(time.Second)))
	switch r.State {
	case "waits":
		row("until", when(r.Expires))
	case "expired":
		row("until", when(r.Expires)+": it is too late to answer; end the call as denied: "+at.HintOn(r.node, "resume", r.Call))
	case "interrupted":
		row("until", "its process died while the call ran, so it can no longer be answered; determine its outcome: "+at.HintOn(r.node, "recover"))
	default:
		row("answer", r.State+" by "+r.By+"; the call is not resumed yet")
	}
	if r.Process != "" && r.State != "interrupted" {
		row("process", r.Process+map[bool]string{true: ", which has ended", false: ", which continues the call"}[r.OwnerGone])
		if r.OwnerGone && r.State != "expired" {
			row("then", map[bool]string{true: "after the answer, "}[r.State == "waits"]+"resume the call "+withTheRest+": "+at.HintOn(r.node, "resume", r.Call))
		}
	}
	if r.Diff != "" {
		row("wants", "to change:")
		p.Patch(w, r.Diff)
	}
	row("note", r.Note)
	row("approve", r.Approve)
	if r.State == "waits" {
		row("refuse", at.Hint("deny", r.Call))
	}
}

// notResumed says how a request was answered that has not been acted on.
func notResumed(p cli.Style, state string) string {
	if state != "approved" && state != "denied" {
		return ""
	}
	return "  " + p.Doubt(state+", not resumed yet")
}

// maxInput limits the shown input, in bytes.
const maxInput = 4000

// inputText formats an input. It shortens a long input and names the command
// that shows all of it.
func inputText(input json.RawMessage, show string) string {
	if len(input) <= maxInput {
		return string(input)
	}
	return fmt.Sprintf("%s … and %d more bytes: %s", strings.ToValidUTF8(string(input[:maxInput]), ""), len(input)-maxInput, show)
}
