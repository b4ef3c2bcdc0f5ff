package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// Command returns remit tools.
func Command(a *cli.App) *cobra.Command {
	var f toolsFlags
	cmd := &cobra.Command{
		Use: "tools [NAME]...", Short: "List the tools, what they can touch, and whether their calls can be reverted",
		Long: "Lists the tools with what they can touch, their confinement (sandbox, handles or trusted), how their calls are\n" +
			"verified and reverted, and their grade (docs/guides/grade.md). With --policy, the list leaves out tools that the\n" +
			"policy hides. Hiding is not protection: the policy decides a call of a hidden tool like any other. With --why, the\n" +
			"command reports on one tool: whether it is offered, and if not, which check fails. The exit code is 5 if the tool is\n" +
			"not configured.",
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := state.Declare(cmd.Context(), a, &f.Declarations, nil, nil); err != nil {
				return err
			}
			calls, err := f.services.Tools()
			if err != nil {
				return err
			}
			a.DeclaredTools = append(a.DeclaredTools, calls...)
			switch {
			case !cmd.Flags().Changed("why"):
				return listTools(cmd.Context(), a, f, names)
			case len(names) > 0:
				return cli.UsageProblem("--why names the tool; there are further ones behind it")
			}
			return explainTool(cmd.Context(), a, &f, f.why)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.policies, "policy", nil, "policy `PATH` whose hidden tools are left out: a .rego file, a folder of such files, or builtin:PACK (default: no policy; the workspace policy for --why)")
	flags.StringVar(&f.as, "principal", "agent", "`ID` of the principal, for the policy")
	flags.StringArrayVar(&f.roles, "role", nil, "role `R` of the principal, for the policy")
	startup.AddDataFlags(cmd, &f.data)
	flags.BoolVar(&f.json, "json", false, "write one JSON object per line, for each tool")
	cmd.AddCommand(statsCommand(a), checkCommand(a), defineCommand(a))
	flags.StringVar(&f.why, "why", "", "report whether the tool `NAME`, or NAME@VERSION, is offered, and if not, which check fails")
	state.AddDeclarationFlags(cmd, &f.Declarations)
	state.AddServicesFlag(cmd, &f.services)
	return cmd
}

// toolsFlags holds the flags of remit tools.
type toolsFlags struct {
	policies, roles []string
	as, why         string
	json            bool
	services        state.Services
	data            startup.Data
	state.Declarations
}

// shownTools returns all tools, or with a policy those that a session sees.
func shownTools(ctx context.Context, a *cli.App, f toolsFlags) ([]tool.Tool, error) {
	if f.as == "" {
		return nil, cli.UsageProblem("--principal is empty: name the agent or person that makes the calls")
	}
	if len(f.policies) == 0 {
		tools, err := tool.NewRegistry(state.Tools(a)...)
		return tools.All(), err
	}
	return offeredTools(ctx, a, f)
}

// offeredTools returns the tools that a session lists.
func offeredTools(ctx context.Context, a *cli.App, f toolsFlags) (shown []tool.Tool, err error) {
	err = withSession(ctx, a, f, func(s *agent.Session) error {
		shown, err = s.Tools(ctx)
		return err
	})
	return shown, err
}

// withSession calls look with a session of the flags, on a journal in memory.
func withSession(ctx context.Context, a *cli.App, f toolsFlags, look func(s *agent.Session) error) error {
	engine, err := policyfile.Load(f.policies, false)
	if err != nil {
		return err
	}
	opts := append(slices.Clone(a.Customizers), agent.Journal(journal.Memory()), agent.Host(a.Host), agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(state.Tools(a)...), agent.Policy(engine))
	rt, err := agent.New(opts...)
	if err != nil {
		return err
	}
	defer func() { _ = rt.Close() }() // the runtime has no roots
	data, err := f.data.Options()
	if err != nil {
		return err
	}
	s, err := rt.Session(ctx, perm.Principal{ID: f.as, Roles: f.roles}, data...)
	if err != nil {
		return err
	}
	return look(s)
}

// toolRecord is the JSON form of a declaration.
type toolRecord struct {
	Name        string                  `json:"name"`
	Description string                  `json:"description"`
	Version     string                  `json:"version,omitempty"`
	Deprecated  string                  `json:"deprecated,omitempty"`
	Source      provenance.Source       `json:"provenance"`
	Unset       string                  `json:"not_configured,omitempty"` // why calls are invalid
	EffectClass effect.Class            `json:"effect_class"`
	Declared    bool                    `json:"declared"`
	Confinement tool.Confinement        `json:"confinement"`
	CanVerify   bool                    `json:"can_verify"`
	CheckedBy   []string                `json:"checked_by"` // output_schema, verify
	CanRevert   bool                    `json:"can_revert"`
	RevertedBy  []string                `json:"reverted_by"` // revert, handles, sandbox; empty: nothing to revert, or nothing reverts it
	CanHold     bool                    `json:"can_hold"`    // a policy can hold calls until the commit
	Idempotent  bool                    `json:"idempotent,omitempty"`
	Risk        perm.Risk               `json:"risk,omitempty"`
	Approval    bool                    `json:"approval,omitempty"` // the author advises approval
	Usage       string                  `json:"usage,omitempty"`
	Needs       []perm.ResourceAccess   `json:"needs"`
	Input       json.RawMessage         `json:"input"`
	Digest      string                  `json:"digest"`
	Grade       provenance.Grade        `json:"grade"`            // grade of this digest by the fault kit
	Graded      *provenance.GradeRecord `json:"graded,omitempty"` // build that graded it, and what prevents a better grade

	reverted string
}

// listTools writes the named tools, or all.
func listTools(ctx context.Context, a *cli.App, f toolsFlags, names []string) error {
	tools, err := shownTools(ctx, a, f)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(tools, func(t tool.Tool) bool { return t.Name() == name || t.QualifiedName() == name }) {
			return &cli.Problem{
				Code: cli.ExitUsage, What: fmt.Sprintf("there is no tool %q", name), Why: "names are taken exactly as they are written",
				Fix: "remit tools lists them",
			}
		}
	}
	for _, t := range tools {
		if len(names) > 0 && !slices.Contains(names, t.Name()) && !slices.Contains(names, t.QualifiedName()) {
			continue
		}
		s := t.Spec()
		r := toolRecord{
			Name: s.Name, Description: s.Description, Version: s.Version, Deprecated: s.Deprecated, Source: s.Provenance, Unset: t.NotConfiguredReason(),
			EffectClass: t.Class(), Declared: s.EffectClass != "",
			Confinement: s.Confinement, CanVerify: t.CanVerify(), CheckedBy: checks(s), CanRevert: t.CanRevert(), RevertedBy: revertMeans(s), Idempotent: s.Hints.Idempotent, Risk: s.Hints.Risk, Approval: s.Hints.Approval, Usage: s.Usage,
			CanHold: t.Class() == effect.Deferrable || t.Class() == effect.Pivot, Needs: cli.Listed(s.Needs),
			Input: t.InputSchema(), Digest: t.Digest(), Grade: t.Grade(), Graded: t.GradeRecord().ToPointer(), reverted: revertWords(s),
		}
		if f.json {
			a.WriteJSON(r)
		} else {
			writeTool(a.Style(), a.Out, r)
			if len(names) > 0 {
				writeArguments(a.Style(), a.Out, r.Input)
			}
		}
	}
	return nil
}

func writeTool(p cli.Style, w io.Writer, r toolRecord) {
	class := string(r.EffectClass)
	if !r.Declared {
		class += " (undeclared)"
	}
	_, _ = fmt.Fprintf(w, "%s  %s, %s\n    %s\n", p.Bold(fmt.Sprintf("%-12s", r.Name)), class, r.Confinement, cli.Printable(r.Description))
	row := func(name, words string) {
		_, _ = fmt.Fprintf(w, "    %s %s\n", p.Faint(fmt.Sprintf("%-8s", name)), cli.Printable(words))
	}
	if r.Version != "" && r.Source.Kind != provenance.Builtin {
		row("version", r.Version)
	}
	if r.Deprecated != "" {
		row("deprec.", "use it no more: "+r.Deprecated)
	}
	if r.Unset != "" {
		row("not set", "it is not offered: "+r.Unset)
	}
	if r.Source.Kind == provenance.Definition {
		row("from", r.Source.Name+", for "+r.Source.Implementation)
	}
	if words := hintWords(r); words != "" {
		row("hints", words)
	}
	if r.Usage != "" {
		row("usage", r.Usage)
	}
	row("confined", confinementWords(r.Confinement))
	row("checked", checkWords(r.CheckedBy))
	row("reverted", r.reverted)
	row("grade", gradeWords(r.Grade, r.Graded))
	for _, n := range r.Needs {
		row("needs", n.String())
	}
	_, _ = fmt.Fprintf(w, "    %s\n", p.Faint(r.Digest))
}

// hintWords formats the hints of the author.
func hintWords(r toolRecord) string {
	var words []string
	if r.Idempotent {
		words = append(words, "idempotent")
	}
	if r.Risk != "" {
		words = append(words, string(r.Risk)+" risk")
	}
	if r.Approval {
		words = append(words, "approval advised")
	}
	return strings.Join(words, ", ")
}
