package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// answerCommand makes approve and deny, which differ in one word.
func (a *app) answerCommand(verb, short string, approved bool) *cobra.Command {
	var p place
	var why, question string
	var asJSON bool
	var r remembering
	cmd := &cobra.Command{
		Use: verb + " CALL", Short: short,
		Long: short + ", in the name of the user that the operating system says you are.\n" +
			"It must be somebody else than the one who asked. The call goes on by remit resume. Whoever approves what a call's program\n" +
			"wants to change names, with --question, what they looked at.",
		Args: wantIDs(1, 1, "the id of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(); err != nil {
				return err
			}
			who, err := a.person()
			if err != nil {
				return err
			}
			return a.withRuntime(cmd.Context(), &p, func(rt *agent.Runtime) error {
				grant, err := r.answer(cmd.Context(), rt, agent.Reply{Call: args[0], Approved: approved, By: who, Why: why, Question: question})
				if err != nil {
					return notTaken(err, &p, args[0])
				}
				said := map[bool]string{true: "approved", false: "denied"}[approved]
				if asJSON {
					newJSON(a.out).write(answered{args[0], said, who, why, grant})
					return nil
				}
				_, _ = fmt.Fprintf(a.out, "%s by %s; it ends by %s, with the --policy, --database and --services that the run had\n", said, printable(who), p.hint("resume", args[0]))
				if grant != "" {
					_, _ = fmt.Fprintf(a.out, "remembered as %s; to take it away: %s\n", grant, p.hint("grants", "revoke", grant))
				}
				return nil
			})
		},
	}
	placeFlags(cmd, &p)
	cmd.Flags().StringVar(&why, "why", "", "`TEXT` for the record")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	cmd.Flags().StringVar(&question, "question", "", "`DIGEST` of what you looked at, as remit show says it; refused if the call asks something else by now")
	if approved {
		r.flags(cmd)
	}
	return cmd
}

// notTaken is the problem of an answer that does not count.
func notTaken(err error, p *place, call string) error {
	for _, kind := range []error{tool.ErrInvalid, tool.ErrDenied, revert.ErrNoDoubt} {
		if errors.Is(err, kind) {
			why := strings.TrimSuffix(err.Error(), ": "+kind.Error())
			return &problem{code: exitUsage, what: "the answer was not taken", why: why, fix: p.hint("show", call) + " tells how it stands"}
		}
	}
	return err
}

// answered is what a person said of a call.
type answered struct {
	Call string `json:"call"`
	As   string `json:"as"` // approved, denied; applied, absent
	By   string `json:"by"`
	Why  string `json:"why"`

	Grant string `json:"grant,omitempty"` // what was approved for calls to come
}

// settleCommand has no default answer: an unknown outcome is not to be guessed.
func (a *app) settleCommand() *cobra.Command {
	var p place
	var why string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "settle CALL applied|absent --why TEXT", Short: "Say what became of a call whose outcome is unknown",
		Long: "Writes down, in the name of the user that the operating system says you are, what you found: applied, the effect is there\n" +
			"and can be taken back like any other; absent, it is not. There is no default. It must be somebody else than the one who\n" +
			"asked for the call.",
		Args: wantIDs(2, 2, "the id of one call, and applied or absent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "applied" && args[1] != "absent" {
				return usage(fmt.Sprintf("%q is not an answer; say applied or absent", args[1]))
			}
			if strings.TrimSpace(why) == "" {
				return usage("--why must say what you looked at")
			}
			who, err := a.person()
			if err != nil {
				return err
			}
			return a.withRuntime(cmd.Context(), &p, func(rt *agent.Runtime) error {
				err := rt.Decide(cmd.Context(), args[0], record.Decided{Applied: args[1] == "applied", By: who, Why: why})
				if err != nil {
					return notTaken(err, &p, args[0])
				}
				if asJSON {
					newJSON(a.out).write(answered{args[0], args[1], who, why, ""})
					return nil
				}
				_, _ = fmt.Fprintf(a.out, "call %s is settled: %s, by %s\n", printable(args[0]), args[1], printable(who))
				return nil
			})
		},
	}
	placeFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	cmd.Flags().StringVar(&why, "why", "", "`TEXT` that says what you looked at")
	return cmd
}
