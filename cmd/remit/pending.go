package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// answerCommand makes approve and deny, which differ in one word.
func (a *app) answerCommand(verb, short string, approved bool) *cobra.Command {
	var p place
	var why string
	var asJSON bool
	var r remembering
	cmd := &cobra.Command{
		Use: verb + " CALL", Short: short,
		Long: short + ", in the name of the user that the operating system says you are.\n" +
			"It must be somebody else than the one who asked. The call goes on by remit resume.",
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
				grant, err := r.answer(cmd.Context(), rt, args[0], approved, who, why)
				if errors.Is(err, tool.ErrInvalid) || errors.Is(err, tool.ErrDenied) {
					return &problem{code: exitUsage, what: "the answer was not taken", why: err.Error()}
				}
				if err == nil && asJSON {
					newJSON(a.out).write(answered{args[0], map[bool]string{true: "approved", false: "denied"}[approved], who, why, grant})
				}
				if err == nil && !asJSON && grant != "" {
					_, err = fmt.Fprintf(a.out, "remembered as %s; to take it away: %s\n", grant, p.hint("grants", "revoke", grant))
				}
				return err
			})
		},
	}
	placeFlags(cmd, &p)
	cmd.Flags().StringVar(&why, "why", "", "`TEXT` for the record")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	if approved {
		r.flags(cmd)
	}
	return cmd
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
				err := rt.Decide(cmd.Context(), args[0], revert.Decided{Applied: args[1] == "applied", By: who, Why: why})
				if errors.Is(err, revert.ErrNoDoubt) || errors.Is(err, tool.ErrDenied) {
					return &problem{code: exitUsage, what: "the answer was not taken", why: err.Error()}
				}
				if err == nil && asJSON {
					newJSON(a.out).write(answered{args[0], args[1], who, why, ""})
				}
				return err
			})
		},
	}
	placeFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	cmd.Flags().StringVar(&why, "why", "", "`TEXT` that says what you looked at")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "resume CALL", Short: "Let a call that waited for approval go on",
		Long: "Asks the policy again about the call as it was recorded. Approved, and still what was asked, it runs once; otherwise it\n" +
			"is denied, or goes on waiting. Exit codes are those of remit run.",
		Args: wantIDs(1, 1, "the id of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.resume(cmd.Context(), f, args[0])
		},
	}
	placeFlags(cmd, &f.place)
	cmd.Flags().StringArrayVar(&f.policies, "policy", nil, "policy `PATH`, the same as the run had (default: the workspace policy)")
	cmd.Flags().StringVar(&f.atEnd, "at-end", "keep", "what becomes of the transaction afterwards: commit, revert or keep")
	cmd.Flags().BoolVar(&f.json, "json", false, "answer with one JSON object a line")
	f.as = "agent" // of no use here: who asks is on the record
	return cmd
}

func (a *app) resume(ctx context.Context, f runFlags, id string) (err error) {
	engine, err := loadPolicy(f.policies, false)
	if err != nil {
		return err
	}
	j, err := f.read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	rt, err := a.newRuntime(j, agent.Policy(engine), agent.Wait())
	if err != nil {
		return &problem{code: exitUsage, what: "remit cannot start", why: err.Error()}
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	t, c, err := revert.LoadCall(ctx, j, id)
	if err != nil {
		return err
	}
	if c.Phase != revert.PhasePending {
		return &problem{code: exitUsage, what: "call " + id + " does not wait for anybody", why: "it is " + string(c.Phase)}
	}
	tx, err := rt.Open(ctx, t.ID)
	if err != nil {
		return err
	}
	r := &runner{journal: j, how: f, tell: a.teller(&f, rt.Tools()), sum: newSummary(), tx: tx}
	out, _ := tx.Resume(ctx, id)
	r.answer(1, call{tool: c.Tool.Name, args: c.Asked.Input}, out)
	end := f.atEnd
	if out.Status == tool.StatusPending {
		end = "keep"
	}
	err = r.finish(ctx, end)
	a.code = worst(a.code, r.code)
	return err
}
