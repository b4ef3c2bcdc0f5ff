package connect

import (
	"fmt"
	"path/filepath"
)

// Status reports the states of the client's files. It changes nothing.
func (c Client) Status(p Environment) (r Report, err error) {
	if err := p.check(); err != nil {
		return r, err
	}
	r = Report{Client: c.name, Title: c.title}
	off := c.disabled(p)
	for _, src := range c.files(p) {
		f, err := c.status(p, src, off)
		if err != nil {
			f = File{Path: src.path, State: StateUnreadable, Error: inFile(src.path, err).Error(), Hooks: src.hookState(nil)}
		}
		f.tools = src.tools
		r.Files = append(r.Files, f)
	}
	r.Coverage = c.coverage(p, r.Files)
	return r, nil
}

func (c Client) status(p Environment, src source, off disabled) (f File, err error) {
	f = File{Path: src.path, State: StateAbsent, Hooks: src.hookState(nil)}
	is, err := loadFile(src.path)
	if err != nil || is == nil {
		return f, err
	}
	if src.content != "" {
		f.State, f.Hooks = StateEmpty, src.hookState(is.text)
		return f, nil
	}
	old, err := p.recordOf(src.path)
	if err != nil {
		return f, err
	}
	s := &step{source: src, held: is, base: is.text}
	_, body, err := opened(is.text)
	if err != nil {
		return f, err
	}
	f.State = StateEmpty
	f.Hooks, f.off = src.hookState(is.text), src.switchedOff(is.text)
	if blank(body) {
		return f, nil
	}
	tables, err := src.format.tables(body, src.layout)
	if err != nil {
		return f, err
	}
	behind, beside := false, false
	for _, t := range tables {
		f.Notes = append(f.Notes, c.staleGateways(p, t)...)
		for _, server := range s.listServers(c, p, t, off) {
			if own := server.Gateway != ""; own {
				behind = true
				f.Servers = append(f.Servers, old.behind(server)...)
				continue
			}
			beside = beside || server.Why == ""
			f.Servers = append(f.Servers, server)
		}
	}
	f.State = stateOf(behind, beside, len(f.Servers) > 0)
	f.Notes = append(f.Notes, wrongKey(src, body)...)
	return f, nil
}

func stateOf(behind, beside, some bool) FileState {
	switch {
	case behind && beside:
		return StateMixed
	case behind:
		return StateRouted
	case some:
		return StateDirect
	default:
		return StateEmpty
	}
}

// listServers lists the servers of a table. For a gateway it adds the
// configuration of its entry.
func (s *step) listServers(c Client, p Environment, t *table, off disabled) (all []Server) {
	scope, project := s.source.scope, s.source.project
	if t.project != "" {
		scope, project = Local, t.project
	}
	speak := &variableRewriter{variableSyntax: c.dialect, client: c.title, home: p.Home, project: project}
	for _, is := range t.servers {
		told := Server{Name: is.name, Scope: scope, Project: project}
		if e := c.common(is.entry); isGateway(e) {
			told.Gateway = gatewayOf(e)
		} else {
			_, told.Why = c.importServer(is, speak, off, scope, project)
		}
		all = append(all, told)
	}
	return all
}

// staleGateways names the entries that start a remit that is missing.
func (c Client) staleGateways(p Environment, t *table) (notes []string) {
	for _, is := range t.servers {
		e := c.common(is.entry)
		if command, _ := e.text("command"); isGateway(e) && command != p.Command && filepath.IsAbs(command) && stale([]string{command}) {
			notes = append(notes, fmt.Sprintf("server %q starts %s, which is missing: remit connect %s writes the current path", is.name, command, c.name))
		}
	}
	return notes
}

// gatewayOf returns the configuration with which an entry starts the gateway.
func gatewayOf(e entry) string {
	if path := argument(e, "--config"); path != "" {
		return path
	}
	return "unknown"
}

// argument returns the argument after a flag in an entry, or "".
func argument(e entry, flag string) string {
	raw, _ := e.get("args")
	args, _ := decoded(raw).([]any)
	for i, a := range args {
		if a == flag && i+1 < len(args) {
			text, _ := args[i+1].(string)
			return text
		}
	}
	return ""
}

// behind returns the servers behind a gateway, by the record; without a record,
// the gateway itself.
func (r *record) behind(gateway Server) (all []Server) {
	if r == nil {
		return []Server{gateway}
	}
	for _, was := range r.Tables {
		if was.Name != gateway.Name || was.Project != gateway.Project && was.Scope == Local {
			continue
		}
		for _, s := range was.Servers {
			all = append(all, Server{Name: s.Name, Scope: was.Scope, Project: was.Project, Gateway: was.Gateway, GatewayName: s.As})
		}
	}
	if len(all) == 0 {
		return []Server{gateway}
	}
	return all
}

// wrongKey finds servers that a client ignores because of the name of their
// table.
func wrongKey(src source, body []byte) []string {
	if src.layout.key != "servers" {
		return nil
	}
	v, err := src.format.values(body)
	if _, there := v["mcpServers"]; err == nil && there {
		return []string{`what stands in "mcpServers" is not seen: the table is called "servers" here`}
	}
	return nil
}
