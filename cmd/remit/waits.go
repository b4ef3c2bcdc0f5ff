package main

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
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/lineage"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

func pendingCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use: "pending [CALL]", Short: "List the calls that wait for approval",
		Long: "Lists the calls that wait for a person: who asks, what for and since when, and the difference that a call of a file tool would\n" +
			"make to the files as they are now. CALL, or the first characters of it, shows one call with its whole difference.\n" +
			"--watch goes on, and tells of each call that begins to wait or waits no more, until it is interrupted.\n\n" +
			"Exit codes: 0, whether or not calls wait; 2 usage; 1 what is on the journal cannot be read.",
		Args: cli.WantIDs(0, 1, "at most one id of a call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch && len(args) > 0 {
				return cli.UsageProblem("--watch tells of all calls: leave the id out")
			}
			return listPending(cmd.Context(), a, &p, strings.Join(args, ""), watch, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().StringArrayVar(&p.Moved, "root", nil, "where the folder of a root is now, as `NAME=DIR`, for differences")
	cmd.Flags().BoolVar(&watch, "watch", false, "go on, and tell of each change")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line, one for each call")
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
	if id != "" {
		if id, err = waitingID(ctx, j, id); err != nil {
			return err
		}
		most = approval.ShownLines
	}
	all, damage := approval.FindPending(ctx, j)
	if id != "" {
		all = slices.DeleteFunc(all, func(w approval.Pending) bool { return w.Call.Ref.Call != id })
		if len(all) == 0 && damage == nil {
			return &cli.Problem{Code: cli.ExitUsage, What: "call " + id + " does not wait", Fix: p.Hint("show", id) + " tells how it stands"}
		}
	}
	if err := writeAll(ctx, a, p, j, all, most, asJSON); err != nil {
		return errors.Join(err, damage)
	}
	if len(all) == 0 && damage == nil && !asJSON {
		_, _ = fmt.Fprintln(a.Out, "no call waits for approval")
	}
	return damage
}

// writeAll writes calls that wait.
func writeAll(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, all []approval.Pending, most int, asJSON bool) error {
	tools, err := tool.NewRegistry(state.Tools(a)...)
	if err != nil {
		return err
	}
	for i, w := range all {
		r, err := approveRecordOf(ctx, a, p, j, w, tools, most)
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

// when is a time as people read it, with its zone.
func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 -07:00") }

// writePending writes one call that waits.
func writePending(p cli.Style, w io.Writer, at *state.Workspace, r waitRecord, now time.Time) {
	_, _ = fmt.Fprintf(w, "%s %s  %s  %s\n", p.Doubt("…"), p.Bold(r.Call), cli.Printable(r.Tool), render.Arguments(r.Input, nil))
	row := func(name, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "  %s %s\n", p.Faint(fmt.Sprintf("%-9s", name)), cli.Printable(text))
		}
	}
	if r.Diff == "" { // then nothing else shows what an approval is for
		row("input", wholeInput(r.Input, at.Hint("show", r.Call)))
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
	row("since", fmt.Sprintf("%s (%s)", when(r.Since), now.Sub(r.Since).Round(time.Second)))
	switch r.State {
	case "waits":
		row("until", when(r.Expires))
	case "expired":
		row("until", when(r.Expires)+": it is too late to answer; "+at.Hint("resume", r.Call)+" ends it as denied")
	case "interrupted":
		row("until", "its process died while the call ran: nobody can answer it; "+at.Hint("recover")+" finds out what became of it")
	default:
		row("answer", r.State+" by "+r.By+"; it has not gone on yet")
	}
	if r.Asker != "" && r.State != "interrupted" {
		ended := ", which has ended: once the call is answered, " + at.Hint("resume", r.Call) + " lets it go on, with the --policy, --database and --services that the run had"
		row("process", r.Asker+map[bool]string{true: ended, false: ", which goes on with it"}[r.OwnerGone])
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

// mostInput is how much of an input is shown, in bytes.
const mostInput = 4000

// wholeInput is the input of a call as it is, or as much of it as a person reads, and where the rest is.
func wholeInput(input json.RawMessage, show string) string {
	if len(input) <= mostInput {
		return string(input)
	}
	return fmt.Sprintf("%s … and %d more bytes: %s", strings.ToValidUTF8(string(input[:mostInput]), ""), len(input)-mostInput, show)
}

// waitRecord is a call that waits, for programs.
type waitRecord struct {
	Call      string          `json:"call"`
	Txn       string          `json:"txn"`
	Session   string          `json:"session"`
	Principal string          `json:"principal"`
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"` // without what the tool calls sensitive
	Access    []record.Access `json:"access"`
	Reasons   []render.Reason `json:"reasons"`
	Since     time.Time       `json:"since"`
	Expires   time.Time       `json:"expires"`
	State     string          `json:"state"`              // waits, approved, denied, expired, interrupted
	By        string          `json:"by,omitempty"`       // who answered
	Earlier   string          `json:"earlier,omitempty"`  // says that the call was approved before, and for what
	Asker     string          `json:"asker,omitempty"`    // the process that asked: its name and number
	OwnerGone bool            `json:"owner_gone"`         // the process that asked has ended
	Diff      string          `json:"diff,omitempty"`     // what the call would change, as the files are now
	Note      string          `json:"note,omitempty"`     // what is missing from diff, and why
	Question  string          `json:"question,omitempty"` // digest that an approval names; of a program whose changes wait
	Approve   string          `json:"approve,omitempty"`  // the command that approves it

	client string
}

// approveRecordOf is one call as people and programs read it. Most is how many lines of its difference are shown.
func approveRecordOf(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, w approval.Pending, tools tool.Registry, most int) (waitRecord, error) {
	who, err := state.PrincipalOf(ctx, j, w.Txn.Session)
	if err != nil {
		return waitRecord{}, err
	}
	c := w.Call
	r := waitRecord{
		Call: c.Ref.Call, Txn: c.Ref.Txn, Session: c.Session, Principal: who.ID, Tool: c.Tool.Name, Input: pendingInput(c, tools), Access: cli.Listed(c.Asked.Access),
		Earlier: c.Asked.Earlier(), Reasons: []render.Reason{}, Since: c.Began, Expires: c.Asked.Expires, OwnerGone: !w.Alive, client: render.Client(who.Client),
	}
	var d perm.DecisionRecord
	if err := json.Unmarshal(c.Asked.Decision, &d); err != nil {
		return waitRecord{}, fmt.Errorf("the decision of call %s: %w", r.Call, err)
	}
	r.Reasons = cli.Listed(render.DecisionOf(&d).Reasons)
	var asked lineage.Asker
	if first := w.Call.Asked.Askers; len(first) > 0 && json.Unmarshal(first[0], &asked) == nil && len(asked.Processes) > 0 {
		r.Asker = fmt.Sprintf("%s (process %d)", asked.Processes[0].Name, asked.Processes[0].PID)
	}
	what := approval.Preview{Patch: w.Call.Asked.Preview}
	if w.Call.Asked.Purpose == "" {
		folders, err := p.RootFolders(ctx, j, w.Txn.Session)
		if err != nil {
			return waitRecord{}, err
		}
		what = approval.PreviewCall(ctx, folders, tools, r.Tool, c.Tool.Digest, c.Asked.Input)
	} else {
		r.Question = w.Call.Asked.Digest
	}
	what = what.Truncate(most)
	r.Diff, r.Note = what.Patch, what.Note
	r.state(p, w, a.Host.Now())
	return r, nil
}

// pendingInput returns the input of a pending call without its sensitive values.
// It hides the whole input of an unknown tool, unless an MCP server offers it.
func pendingInput(c *revert.Call, tools tool.Registry) json.RawMessage {
	t, known := tools.Get(c.Tool.Name)
	switch input := c.Input(); {
	case !known && !ofAServer(c.Asked.Access):
		return json.RawMessage(`"(hidden)"`)
	case input == nil:
		return json.RawMessage("null")
	case known:
		return render.HideArguments(input, t.Spec().Hints.Sensitive)
	default:
		return input
	}
}

// ofAServer reports whether a call is one of another server's tool. No such tool says that an argument is sensitive, and a person who
// approves has to see what the call is given.
func ofAServer(accesses []record.Access) bool {
	return slices.ContainsFunc(accesses, func(a record.Access) bool {
		return a.Action == string(perm.Call) && strings.HasPrefix(a.Resource, "mcp://")
	})
}

func (r *waitRecord) state(p *state.Workspace, w approval.Pending, now time.Time) {
	c := w.Call
	switch {
	case c.Phase == revert.PhaseStarted && !w.Alive: // it asked while it ran
		r.State = "interrupted"
	case c.Answered != nil && c.Answered.Digest == c.Asked.Digest && c.Answered.Approved:
		r.State, r.By = "approved", c.Answered.By
	case c.Answered != nil && c.Answered.Digest == c.Asked.Digest:
		r.State, r.By = "denied", c.Answered.By
	case now.After(r.Expires):
		r.State = "expired"
	default:
		r.State, r.Approve = "waits", p.Hint("approve", r.Call)
		if c.Asked.Purpose != "" {
			r.Approve = p.Hint("approve", r.Call, "--question", r.Question)
		}
	}
}

// lookAgain is how often --watch looks.
const lookAgain = time.Second

// gone tells programs of a call that waits no more.
type goneRecord struct {
	Call  string `json:"call"`
	State string `json:"state"` // gone
}

// watchPending tells of calls that wait until ctx ends.
func watchPending(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, asJSON bool) error {
	a.Progress.Show("") // the line would stand where calls are told of
	known := map[string]string{}
	for first := true; ; first = false {
		all, err := approval.FindPending(ctx, j)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if first && len(all) == 0 { // else a person cannot tell whether it works
			_, _ = fmt.Fprintln(a.Err, "remit: no call waits for approval; this command goes on watching until it is interrupted")
		}
		if err := tellChanges(ctx, a, p, j, all, known, asJSON); err != nil && ctx.Err() == nil {
			return err
		}
		tick, free := a.Host.WithTimeout(ctx, lookAgain, nil)
		<-tick.Done()
		free()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// tellChanges writes what is not as known says, and brings known up to date.
func tellChanges(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, all []approval.Pending, known map[string]string, asJSON bool) error {
	var fresh []approval.Pending
	here := map[string]bool{}
	for _, w := range all {
		id, state := w.Call.Ref.Call, w.Call.Asked.Digest
		if w.Call.Answered != nil {
			state += fmt.Sprint(w.Call.Answered.Approved)
		}
		here[id] = true
		if known[id] != state {
			known[id], fresh = state, append(fresh, w)
		}
	}
	for id := range known {
		if here[id] {
			continue
		}
		delete(known, id)
		if asJSON {
			a.WriteJSON(goneRecord{id, "gone"})
		} else {
			_, _ = fmt.Fprintf(a.Out, "%s %s  waits no more: %s\n", a.Style().Faint("·"), id, p.Hint("show", id))
		}
	}
	return writeAll(ctx, a, p, j, fresh, approval.ListedLines, asJSON)
}

// minPrefix is how many characters of an id have to be given, beside its kind.
const minPrefix = 4

// waitingID finds the call that an id or its beginning means. A beginning counts where one call that waits has it, and no other.
func waitingID(ctx context.Context, j journal.Journal, id string) (string, error) {
	if _, _, err := revert.LoadCall(ctx, j, id); !errors.Is(err, journal.ErrNotFound) {
		return id, err
	}
	if short, isCall := strings.CutPrefix(id, "c_"); !isCall {
		return id, nil
	} else if len(short) < minPrefix {
		return "", cli.UsageProblem(fmt.Sprintf("%q is too short for the beginning of an id: give c_ and at least %d more characters", id, minPrefix))
	}
	all, err := approval.FindPending(ctx, j)
	if err != nil {
		return id, err
	}
	var found []string
	for _, w := range all {
		if strings.HasPrefix(w.Call.Ref.Call, id) {
			found = append(found, w.Call.Ref.Call)
		}
	}
	switch len(found) {
	case 0:
		return id, nil
	case 1:
		return found[0], nil
	}
	return "", cli.UsageProblem(fmt.Sprintf("%q is the beginning of %d calls that wait: %s", id, len(found), strings.Join(found, ", ")))
}
