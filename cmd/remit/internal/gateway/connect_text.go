package gateway

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/connect"
)

// listClients reports the state of each client.
func listClients(a *cli.App, f connectOptions, p connect.Environment) error {
	found := false
	others, err := connect.FileClients(p)
	if err != nil {
		return connectProblem(err)
	}
	for _, c := range append(connect.Clients(), others...) {
		r, err := c.Status(p)
		if err != nil {
			return connectProblem(err)
		}
		if f.json {
			a.WriteJSON(r)
			continue
		}
		r.Files = slices.DeleteFunc(r.Files, func(f connect.File) bool { return f.State == connect.StateAbsent })
		if len(r.Files) > 0 {
			found = true
			_, _ = fmt.Fprintf(a.Out, "%s  %s\n", a.Style().Bold(r.Client), r.Title)
			writeCoverage(a.Style(), a.Out, r.Coverage)
			writeFiles(a.Style(), a.Out, r)
		}
	}
	if !found && !f.json {
		_, _ = fmt.Fprintf(a.Out, "no configuration of a client was found in %s and %s\n", cli.Printable(p.Home), cli.Printable(p.Project))
		_, _ = fmt.Fprintln(a.Out, "remit connect CLIENT creates the one for hooks, for example: remit connect claude-code")
	}
	return nil
}

// writeCoverage says how much of a client leads to remit.
func writeCoverage(p cli.Style, w io.Writer, c connect.Coverage) {
	tools, paint := "no hooks exist for it", p.Faint
	switch c.OwnTools {
	case connect.HooksOn:
		tools, paint = "hooks on", p.Good
	case connect.HooksOff:
		tools, paint = "hooks off", p.Doubt
	case connect.HooksPartial:
		tools, paint = "hooks for some events only", p.Doubt
	case connect.HooksStale:
		tools, paint = "hooks of a remit that is missing", p.Bad
	case connect.HooksOther:
		tools, paint = "hooks of another remit", p.Doubt
	}
	if c.OnFailure != "" && c.OwnTools != connect.HooksOff {
		tools += "; if a hook fails, the call: " + string(c.OnFailure)
	}
	_, _ = fmt.Fprintf(w, "  own tools    %s\n", paint(tools))
	servers := map[connect.FileState]string{
		connect.StateRouted: "behind the gateway", connect.StateMixed: "some behind the gateway", connect.StateDirect: "started by the client",
	}[c.Servers]
	if servers == "" {
		servers = "none"
	}
	_, _ = fmt.Fprintf(w, "  MCP servers  %s\n", servers)
	for _, note := range c.Notes {
		_, _ = fmt.Fprintf(w, "  %s\n", p.Doubt(cli.Printable(note)))
	}
}

// writeFiles lists files with their states and servers.
func writeFiles(p cli.Style, w io.Writer, r connect.Report) {
	for _, f := range r.Files {
		unused := f.Hooks == connect.HooksOff && len(f.Servers) == 0 && r.Coverage.OwnTools == connect.HooksOn
		if f.State == connect.StateAbsent && f.Hooks != connect.HooksOn || unused && f.Error == "" && !f.Changed {
			continue
		}
		state := string(f.State)
		switch f.State {
		case connect.StateRouted:
			state = p.Good(state)
		case connect.StateUnreadable:
			state = p.Bad(state)
		case connect.StateDirect, connect.StateMixed:
			state = p.Doubt(state)
		case connect.StateAbsent, connect.StateEmpty:
			state = p.Faint(state)
		}
		if f.Hooks != "" && (len(f.Servers) == 0 || f.Hooks != connect.HooksOff) {
			hooks := p.Faint("hooks " + string(f.Hooks))
			if f.Hooks == connect.HooksOn {
				hooks = p.Good("hooks on")
			}
			if state = state + ", " + hooks; len(f.Servers) == 0 {
				state = hooks
			}
		}
		_, _ = fmt.Fprintf(w, "  %s  %s\n", state, cli.Printable(f.Path))
		if f.Error != "" {
			_, _ = fmt.Fprintf(w, "    %s\n", p.Bad(cli.Printable(f.Error)))
		}
		writeFileServers(p, w, f)
	}
}

// writeFileServers lists the servers of a file with their places and notes.
func writeFileServers(p cli.Style, w io.Writer, f connect.File) {
	for _, s := range f.Servers {
		words := "started by the client"
		switch {
		case s.Gateway != "":
			words = "behind " + s.Gateway
			if s.GatewayName != "" {
				words += ", as " + s.GatewayName
			}
		case s.Why != "":
			words = "stays: " + s.Why
		}
		name := s.Name
		if s.Scope == connect.Local {
			name += " (" + s.Project + ")"
		}
		_, _ = fmt.Fprintf(w, "    %-12s %s\n", cli.Printable(name), p.Faint(cli.Printable(words)))
	}
	for _, note := range f.Notes {
		_, _ = fmt.Fprintf(w, "    %s\n", p.Doubt(cli.Printable(note)))
	}
}

// writeConnected reports what connecting did.
func writeConnected(p cli.Style, w io.Writer, r connect.Report, drafts bool) {
	writeFiles(p, w, r)
	for _, note := range r.Coverage.Notes {
		_, _ = fmt.Fprintf(w, "  %s   %s\n", p.Faint("note"), p.Doubt(cli.Printable(note)))
	}
	if !r.Changed() {
		_, _ = fmt.Fprintf(w, "nothing to change in the configuration of %s\n", r.Title)
		return
	}
	writeWritten(p, w, r)
	if r.Preview {
		return
	}
	for _, g := range r.Gateways {
		if len(g.Added) > 0 && !drafts {
			_, _ = fmt.Fprintf(w, "  %s   remit init --config %s --write: until an entry says what their tools do, calls of them are denied\n", p.Faint("next"), cli.Quote(g.Path))
		}
	}
	_, _ = fmt.Fprintf(w, "%s restart %s; %s reverts it\n", p.Good("✓"), r.Title, disconnectCommand(r))
	if r.Coverage.OwnTools == connect.HooksOn {
		_, _ = fmt.Fprintf(w, "  %s   in the folder of the project, remit log lists its prompts, and remit undo reverts the newest one\n", p.Faint("next"))
	}
}

func disconnectCommand(r connect.Report) string {
	if r.Client == "file" {
		return "remit disconnect --file " + cli.Quote(r.Title)
	}
	return "remit disconnect " + r.Client
}

// writeDisconnected reports what disconnecting did.
func writeDisconnected(p cli.Style, w io.Writer, r connect.Report) {
	for _, f := range r.Files {
		words := p.Good("byte for byte as before")
		switch {
		case f.Identical && f.State == connect.StateAbsent:
			words = p.Good("removed, as before")
		case !f.Identical:
			words = p.Doubt("not as before")
		}
		_, _ = fmt.Fprintf(w, "  %s  %s\n", cli.Printable(f.Path), words)
		writeFileServers(p, w, connect.File{Notes: f.Notes})
	}
	writeWritten(p, w, r)
	if !r.Preview {
		_, _ = fmt.Fprintf(w, "%s restart %s\n", p.Good("✓"), r.Title)
	}
}

// writeWritten reports backups and gateway configurations, and shows a preview.
func writeWritten(p cli.Style, w io.Writer, r connect.Report) {
	for _, f := range r.Files {
		if f.Backup != "" && !r.Preview {
			_, _ = fmt.Fprintf(w, "  %s %s\n", p.Faint("backup"), cli.Printable(f.Backup))
		}
	}
	for _, g := range r.Gateways {
		for i, names := range [][]string{g.Added, g.Removed, g.Kept} {
			if len(names) > 0 {
				what := []string{"added", "removed", "kept"}[i]
				_, _ = fmt.Fprintf(w, "  %s  %s: %s\n", cli.Printable(g.Path), p.Faint(what), cli.Printable(strings.Join(names, ", ")))
			}
		}
	}
	for _, f := range r.Files {
		p.Patch(w, f.Diff)
	}
	for _, g := range r.Gateways {
		p.Patch(w, g.Diff)
	}
}
