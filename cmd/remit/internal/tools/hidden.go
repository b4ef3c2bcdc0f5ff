package tools

import (
	"context"
	"fmt"
	"io"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/settings"
)

// whyRecord is the JSON form of why a tool is offered or hidden.
type whyRecord struct {
	settings.Status

	Offered      bool   `json:"offered"`
	Deprecated   string `json:"deprecated,omitempty"`
	From         string `json:"from,omitempty"`          // definition file
	Why          string `json:"why,omitempty"`           // reason if the tool is not offered
	HiddenReason string `json:"hidden_reason,omitempty"` // why a session of remit run does not see the tool and cannot call it
	Hidden       bool   `json:"hidden"`                  // the policy hides the tool
}

// hiddenByPolicy is the result of agent.Session.ToolHiddenReason if only the
// policy hides a tool.
const hiddenByPolicy = "the policy hides it"

// explainTool writes why a tool is offered or hidden.
func explainTool(ctx context.Context, a *cli.App, f *toolsFlags, name string) error {
	r, err := tool.NewRegistry(state.Tools(a)...)
	if err != nil {
		return err
	}
	t, err := r.Find(name)
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: err.Error(), Fix: "remit tools lists them"}
	}
	out := whyRecord{Deprecated: t.Spec().Deprecated, From: t.Spec().Provenance.Name, HiddenReason: t.HiddenReason(perm.ClientFacts{})}
	out.Status = settings.Status{ // a tool of --services has no settings
		Tool: t.Name(), Version: t.Spec().Version, Configured: t.NotConfiguredReason() == "",
		Values: []settings.Value{}, Problems: []settings.Problem{}, Warnings: []string{},
	}
	for _, s := range f.SettingsStatus {
		if s.Tool == t.Name() && s.Version == t.Spec().Version {
			out.Status = s
		}
	}
	err = withSession(ctx, a, *f, func(s *agent.Session) (err error) {
		out.Why, err = s.ToolHiddenReason(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	out.Offered, out.Hidden = out.Why == "", out.Why == hiddenByPolicy
	if !out.Configured {
		a.ExitWith(cli.ExitFailed) // its calls are invalid
	}
	if f.json {
		a.WriteJSON(out)
		return nil
	}
	writeWhy(a.Style(), a.Out, t, out)
	return nil
}

func writeWhy(p cli.Style, w io.Writer, t tool.Tool, r whyRecord) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	switch {
	case !r.Configured:
		line("%s  is not offered: it is not configured", p.Bold(t.QualifiedName()))
	case r.HiddenReason != "":
		line("%s  is not offered, and cannot be called: %s", p.Bold(t.QualifiedName()), cli.Printable(r.HiddenReason))
	case !r.Offered:
		line("%s  is not offered: %s", p.Bold(t.QualifiedName()), cli.Printable(r.Why))
	default:
		line("%s  is offered", p.Bold(t.QualifiedName()))
	}
	for _, f := range r.Problems {
		line("    %s %s", p.Faint(fmt.Sprintf("%-10s", f.Check)), cli.Printable(f.String()))
		if f.Fix != "" {
			line("    %s %s", p.Faint(fmt.Sprintf("%-10s", "fix")), cli.Printable(f.Fix))
		}
	}
	for _, text := range r.Warnings {
		line("    %s %s", p.Faint(fmt.Sprintf("%-10s", "warning")), cli.Printable(text))
	}
	for _, v := range r.Values {
		text := fmt.Sprintf("%s = %s, %s", v.Name, v.Value, v.Layer)
		if v.By != "" {
			text += " by " + v.By
		}
		if v.At != "" {
			text += " (" + v.At + ")"
		}
		line("    %s %s", p.Faint(fmt.Sprintf("%-10s", "setting")), cli.Printable(text))
	}
	if r.Deprecated != "" {
		line("    %s %s", p.Faint(fmt.Sprintf("%-10s", "deprecated")), cli.Printable(r.Deprecated))
	}
}
