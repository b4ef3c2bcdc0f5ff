package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

func (a *app) policyEvalCommand() *cobra.Command {
	var input string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "eval --input FILE|- [PATH]...", Short: "Ask a policy about one access",
		Long: "Decides about one input document as a call would be decided, by the policy of the given files and folders (none: the\n" +
			"workspace policy that holds by default). The exit code is that of the call: 0 for allow and hold, 3 for deny, 4 for\n" +
			"ask; 2 for an input that is no input.\n\n" +
			"Purpose, tool and access have to be there; the rest where a rule reads it. remit policy schema says what all of it\n" +
			"may be. A whole input:\n\n" + sampleInput,
		RunE: func(cmd *cobra.Command, paths []string) error { return a.policyEval(cmd, input, paths, asJSON) },
	}
	cmd.Flags().StringVar(&input, "input", "", "`FILE` with the input document, or - for standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

func (a *app) policyEval(cmd *cobra.Command, input string, paths []string, asJSON bool) error {
	if input == "" {
		return usage("--input is missing: there is nothing to decide about")
	}
	request, err := a.request(input)
	if err != nil {
		return err
	}
	engine, err := loadPolicy(paths, false)
	if err != nil {
		return err
	}
	d, err := engine.Decide(cmd.Context(), request)
	switch {
	case err != nil, d.Effect() == perm.Deny:
		a.code = exitDenied
	case d.Effect() == perm.Ask:
		a.code = exitPending
	}
	if asJSON {
		newJSON(a.out).write(d)
		return nil
	}
	a.paint().decided(a.out, d)
	if err != nil {
		_, _ = fmt.Fprintln(a.err, printable(err.Error()))
	}
	return nil
}

func (a *app) request(input string) (r perm.Request, err error) {
	from := a.in
	if input != "-" {
		f, err := os.Open(input)
		if err != nil {
			return r, unreadable(input, err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, int64(canon.DefaultLimits().Bytes)+1))
	if err != nil {
		return r, unreadable(input, err)
	}
	if r, err = parseRequest(text); err != nil {
		err = &problem{
			code: exitUsage, what: "the input document cannot be used", why: err.Error(),
			fix: "remit policy eval --help shows a whole one, remit policy schema all that it may hold",
		}
	}
	return r, err
}

func unreadable(input string, err error) error {
	return &problem{code: exitUsage, what: fmt.Sprintf("the input %q cannot be read", input), why: plainError(err), fix: "name a file, or - for standard input"}
}

func (p paint) decided(w io.Writer, d perm.Decision) {
	effect := p.good(d.Effect().String())
	if d.Effect() == perm.Deny {
		effect = p.bad(d.Effect().String())
	}
	_, _ = fmt.Fprintln(w, effect)
	details := d.Details()
	for _, r := range append(details.Reasons, append(details.Requires, details.Ensures...)...) {
		set := r.Set
		if set == "" {
			set = d.Effect().String()
		}
		_, _ = fmt.Fprintf(w, "  %-8s %s\n", set, printable(withPlace(r.Text, r.At)))
	}
	for _, h := range details.Hints {
		_, _ = fmt.Fprintf(w, "  %-8s %s\n", "hint", printable(h))
	}
}
