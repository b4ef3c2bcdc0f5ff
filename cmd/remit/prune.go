package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
)

func (a *app) pruneCommand() *cobra.Command {
	var p workspaceState
	var asJSON bool
	keep := revert.Retention{MaxAge: revert.DefaultKeep, KeepLast: revert.DefaultKeepLast}
	cmd := &cobra.Command{
		Use: "prune", Short: "Drop what is needed to take old transactions back, and give the room back",
		Long: "Drops what the records of old calls hold, and kept content that nothing else names. What stays says which tools were\n" +
			"called, how that ended and what they changed, and the journal can still be checked. It never drops anything of a\n" +
			"transaction that is open, was taken back in part only, or has a call of unknown outcome: those are listed.\n" +
			"Age is counted in journal time: a gap of more than a day between two records counts as a day, so a clock that jumps\n" +
			"makes nothing old. It may run beside a server, and gives room back in small steps; remit serve --keep TIME does it by itself.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.prune(cmd.Context(), &p, keep, asJSON) },
	}
	placeFlags(cmd, &p)
	keepFlags(cmd, &keep, "")
	cmd.Flags().BoolVar(&keep.DryRun, "dry-run", false, "only say what would go")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// keepFlags are the flags of a retention; when says when they count.
func keepFlags(cmd *cobra.Command, keep *revert.Retention, when string) {
	cmd.Flags().Var((*ageFlag)(&keep.MaxAge), "keep", when+"keep what ended less than this `TIME` ago, such as 30d or 12h")
	cmd.Flags().Var((*numberFlag)(&keep.KeepLast), "keep-last", when+"keep the newest `N` that ended, however old")
}

// ageFlag is a time as Go writes it, or a number of days.
type ageFlag time.Duration

// String is the time.
func (f *ageFlag) String() string {
	d := time.Duration(*f)
	if d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	return d.String()
}

// Type names what the flag takes.
func (*ageFlag) Type() string { return "time" }

// Set takes the time.
func (f *ageFlag) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err == nil {
			*f = ageFlag(time.Duration(n) * 24 * time.Hour)
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("not a time; write 30d, 12h or 0h")
	}
	*f = ageFlag(d)
	return nil
}

// numberFlag is a number that is not negative.
type numberFlag int

// String is the number.
func (f *numberFlag) String() string { return strconv.Itoa(int(*f)) }

// Type names what the flag takes.
func (*numberFlag) Type() string { return "number" }

// Set takes the number.
func (f *numberFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("not a number; write 0 or more")
	}
	*f = numberFlag(n)
	return nil
}

func (a *app) prune(ctx context.Context, p *workspaceState, keep revert.Retention, asJSON bool) error {
	return a.withRuntime(ctx, p, func(rt *agent.Runtime) error {
		done, err := rt.Prune(ctx, keep)
		if err != nil {
			return err
		}
		if asJSON {
			a.writeJSON(done)
		} else {
			a.paint().pruned(a.out, done, keep.DryRun, p)
		}
		return nil
	})
}

func (p textStyle) pruned(w io.Writer, r revert.PruneReport, dry bool, where *workspaceState) {
	switch {
	case r.Txns == 0:
		_, _ = fmt.Fprintln(w, "nothing is past retention")
	case dry:
		_, _ = fmt.Fprintf(w, "would drop the records of %s, which could not be taken back any more, and up to %s of content\n", count(r.Txns, "transaction"), size(r.Content))
	default:
		_, _ = fmt.Fprintf(w, "%s dropped the records of %s, which cannot be taken back any more\n", p.good("✓"), count(r.Txns, "transaction"))
	}
	for _, o := range r.Kept {
		_, _ = fmt.Fprintf(w, "%s %s is old and was kept: %s\n", p.doubt("?"), o.Txn, printable(o.Why))
	}
	if !dry {
		_, _ = fmt.Fprintf(w, "%s dropped; the state is %s smaller, and has %s\n", count(int(r.Blobs), "content"), size(r.Freed), size(r.Size))
	}
	if r.Waiting != "" {
		_, _ = fmt.Fprintf(w, "%s %s\n     again  %s\n", p.doubt("?"), r.Waiting, where.hint("prune"))
	}
}
