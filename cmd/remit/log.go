package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

func logCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	var only string
	var newest int
	cmd := &cobra.Command{
		Use: "log", Short: "List transactions and their calls, newest first",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if only == "" && cmd.Flags().Changed("txn") {
				return cli.EmptyID()
			}
			if cmd.Flags().Changed("newest") && newest < 1 {
				return cli.UsageProblem(fmt.Sprintf("--newest %d: must be at least 1", newest))
			}
			return writeLog(cmd.Context(), a, &p, only, newest, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line, one for each transaction")
	cmd.Flags().IntVarP(&newest, "newest", "n", 0, "only the newest `N` transactions (default: all)")
	cmd.Flags().StringVar(&only, "txn", "", "only the transaction with this `ID`")
	return cmd
}

func writeLog(ctx context.Context, a *cli.App, p *state.Workspace, only string, newest int, asJSON bool) (err error) {
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	tools, err := tool.NewRegistry(state.Tools(a)...)
	if err != nil {
		return err
	}
	shown := 0
	var damage []error
	gaps, err := gapsAfter(ctx, j, 0)
	if err != nil {
		damage = append(damage, err)
	}
	show := func(id string, behind []gap) error {
		_, rec, err := loadTxn(ctx, j, id)
		if errors.Is(err, record.ErrDamaged) && only == "" { // the others are listed all the same
			damage = append(damage, fmt.Errorf("transaction %s: %w", id, err))
			return nil
		}
		if err != nil {
			return err
		}
		shown++
		rec.Missing = behind
		if asJSON {
			a.WriteJSON(rec)
		} else {
			writeGaps(a.Style(), a.Out, behind)
			writeTxn(a.Style(), a.Out, rec, tools)
		}
		return nil
	}
	if only != "" {
		behind, err := target{id: only}.gaps(ctx, j, only)
		return errors.Join(show(only, behind), err)
	}
	for e, err := range j.Entries(ctx, journal.Query{Kinds: []kind.Kind{kind.Begun}, Newest: true}) {
		switch {
		case err != nil && e.Pos != 0:
			damage = append(damage, fmt.Errorf("a transaction: %w", err))
			continue
		case err == nil:
			older := slices.IndexFunc(gaps, func(g gap) bool { return g.pos > e.Pos })
			behind := gaps[len(gaps):]
			if older >= 0 {
				gaps, behind = gaps[:older], gaps[older:]
			}
			err = show(e.Header.Txn, behind)
		}
		if err != nil {
			return err
		}
		if shown == newest {
			break
		}
	}
	if shown == 0 && len(damage) == 0 && !asJSON {
		_, _ = fmt.Fprintln(a.Out, "nothing is recorded for this workspace yet")
	}
	if !asJSON {
		writeGaps(a.Style(), a.Out, gaps)
	}
	return errors.Join(damage...)
}

func writeTxn(p cli.Style, w io.Writer, r txnRecord, tools tool.Registry) {
	_, _ = fmt.Fprintf(w, "%s  %s  %s  %s", p.Bold(r.Txn), render.State(p, r.State, r.OwnerGone), p.Faint(r.Began.Local().Format("2006-01-02 15:04:05")), cli.Printable(r.Principal))
	if words := render.Client(r.Client); words != "" {
		_, _ = fmt.Fprintf(w, "  shown to %s", cli.Printable(words))
	}
	if r.Undoes != "" {
		what := r.Undoes
		if r.UndoesCall != "" {
			what = "call " + r.UndoesCall + " of " + what
		}
		_, _ = fmt.Fprint(w, "  takes back "+what)
	}
	if r.Redoes != "" {
		_, _ = fmt.Fprintf(w, "  brings back %s", r.Redoes)
		if r.Only != "" {
			_, _ = fmt.Fprintf(w, " as far as %s took it", r.Only)
		}
	}
	if r.Committing {
		_, _ = fmt.Fprint(w, "  its commit has begun")
	}
	if len(r.UndoneBy) > 0 {
		_, _ = fmt.Fprintf(w, "  taken back by %s", strings.Join(r.UndoneBy, ", "))
	}
	if len(r.RedoneBy) > 0 {
		_, _ = fmt.Fprintf(w, "  brought back by %s", strings.Join(r.RedoneBy, ", "))
	}
	_, _ = fmt.Fprintln(w)
	for _, e := range newestElsewhere(r.Elsewhere) {
		_, _ = fmt.Fprintf(w, "  in another folder, %s: %s, by %s\n", foldersWords(e.Roots), render.State(p, e.State, false), e.Txn)
	}
	for _, c := range r.Calls {
		mark := render.Mark(p, tool.Status(c.Status))
		if c.ended().Failed() {
			mark = p.Bad("✗")
		}
		_, _ = fmt.Fprintf(w, "  %s %s %-12s %s\n", mark, p.Faint(c.Call), cli.Printable(c.Tool), callWords(p, c, tools))
	}
}

// newestElsewhere are the newest of each place.
func newestElsewhere(all []elsewhereRecord) (out []elsewhereRecord) {
	for i, e := range all {
		if !slices.ContainsFunc(all[i+1:], func(later elsewhereRecord) bool { return foldersWords(later.Roots) == foldersWords(e.Roots) }) {
			out = append(out, e)
		}
	}
	return out
}

func foldersWords(roots []folderRecord) string {
	var words []string
	for _, r := range roots {
		words = append(words, "root "+r.Root+" at "+cli.Printable(r.Path))
	}
	return strings.Join(words, ", ")
}

// ended is how the program of a call ended; the zero value if there is none.
func (c callLine) ended() render.Program { return render.Program{Code: c.ExitCode, Signal: c.Signal} }

// callWords says in one line what a call was given and what became of it.
func callWords(p cli.Style, c callLine, tools tool.Registry) string {
	var words []string
	status, done := strings.ReplaceAll(c.Status, "_", " "), tool.Status(c.Status).OK()
	switch {
	case c.Status == string(tool.StatusHeld):
		words = append(words, p.Doubt("held until the commit"))
	case c.Status == string(revert.PhaseDropped):
		words = append(words, p.Faint("held, and dropped: it never ran"))
	case !done:
		words = append(words, p.Bad(status))
	case c.ended().Failed():
		words = append(words, p.Bad(c.ended().Result()))
	}
	if len(c.Changes) == 0 || c.ExitCode != nil {
		words = append(words, givenWords(c, tools))
	}
	words = append(words, render.Changes(c.Changes))
	if c.Queued && c.Status != string(tool.StatusHeld) {
		words = append(words, p.Faint("(still queued)"))
	}
	if c.Undone != "" {
		words = append(words, p.Faint("(taken back: "+strings.ReplaceAll(c.Undone, "_", " ")+")"))
	}
	if c.Erased != nil {
		words = append(words, p.Faint("("+erasedWords(c.Erased)+")"))
	}
	if rated := ratedWords(c.Feedback); len(rated) > 0 {
		words = append(words, p.Faint("["+strings.Join(rated, ", ")+"]"))
	}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "  ")
}

// givenWords are the arguments of a call in short. A tool that is not at hand may call some
// of them sensitive, so nothing of its arguments is shown.
func givenWords(c callLine, tools tool.Registry) string {
	t, ok := tools.Get(c.Tool)
	if !ok || len(c.input) == 0 || string(c.input) == "null" {
		return ""
	}
	return render.Arguments(c.input, t.Spec().Hints.Sensitive)
}

func erasedWords(e *erasedRecord) string {
	if e.Cause == "retention" {
		return "its records were dropped by age"
	}
	return "erased by " + cli.Printable(e.By)
}
