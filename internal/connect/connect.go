package connect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Mode selects whether changes are written. The zero Mode only shows them.
type Mode int

// The modes.
const (
	Preview Mode = iota // write nothing, show the diff
	Write
)

// ErrNotConnected is returned for a client with nothing to disconnect.
var ErrNotConnected = errors.New("it is not connected")

// attempts bounds how often a change is planned because the client wrote its
// file meanwhile.
const attempts = 5

// step is the change of one file.
type step struct {
	source source
	held   *loadedFile
	base   []byte  // content before it was connected; nil: it was missing
	after  []byte  // content after the change; nil: it is missing
	exact  bool    // base is known byte for byte
	old    *record // of an earlier connect
	new    *record // nil: nothing leads to the gateway
	added  []movedServer
	report File
}

// Connect routes the client's servers through the gateway. Connecting again
// adds the servers that are new in the file. Nothing is written before every
// change was checked. If writing fails half-way, the error says so, and both
// Connect and Disconnect can continue.
func (c Client) Connect(p Environment, mode Mode) (r Report, err error) {
	if err := p.check(); err != nil {
		return r, err
	}
	if mode == Write {
		unlock, err := p.lock()
		if err != nil {
			return r, err
		}
		defer unlock()
	}
	for range attempts {
		if r, err = c.connect(p, mode); !errors.Is(err, errMoved) {
			return r, err
		}
	}
	return r, fmt.Errorf("%s keeps writing its configuration: quit it and try again: %w", c.title, err)
}

// check rejects paths that make entries which work in one folder only.
func (p Environment) check() error {
	for what, path := range map[string]string{"home": p.Home, "state": p.State, "command": p.Command} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("the %s %q is not an absolute path", what, path)
		}
	}
	for what, path := range map[string]string{"project": p.Project, "configuration of the gateway": p.Gateway, "workspace": p.Workspace} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("the %s %q is not an absolute path", what, path)
		}
	}
	return nil
}

func (c Client) connect(p Environment, mode Mode) (r Report, err error) {
	r = Report{Client: c.name, Title: c.title, Preview: mode != Write}
	records, err := p.records()
	if err != nil {
		return r, err
	}
	var steps []*step
	var come, gone []movedServer
	off := c.disabled(p)
	for _, src := range c.files(p) {
		s, err := c.step(p, src, off)
		if err != nil {
			return r, inFile(src.path, err)
		}
		if p.HooksOnly && s.old == nil && len(src.hooks) == 0 && src.content == "" {
			continue // servers alone
		}
		steps = append(steps, s)
		come = append(come, s.added...)
		if s.old != nil {
			gone = append(gone, s.old.moved()...)
			records = slices.DeleteFunc(records, func(r *record) bool { return r.Path == s.old.Path })
		}
	}
	edits, err := gatewayEdits(come, gone, records)
	if err != nil {
		return r, err
	}
	for _, s := range steps {
		if s.new != nil {
			recordAdded(s.new, edits)
		}
	}
	r.fill(steps, edits)
	r.Coverage = c.coverage(p, r.Files)
	if mode != Write {
		return r, nil
	}
	for _, s := range steps {
		if err := s.record(p); err != nil {
			return r, err
		}
	}
	for _, e := range edits {
		if err := e.apply(); err != nil {
			return r, err
		}
	}
	for _, s := range steps {
		err := s.write()
		if err == nil && s.old != nil && s.new == nil {
			err = p.forget(s.old, s.exact)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// fill reports the planned changes.
func (r *Report) fill(steps []*step, edits []*gatewayEdit) {
	hide := strings.NewReplacer()
	if r.Preview {
		hide = secretsOf(steps, edits)
	}
	for _, s := range steps {
		if r.Preview && s.report.Changed {
			s.report.Diff = difference(s.source.path, s.held.content(), s.after, hide)
		}
		s.report.Hooks, s.report.tools, s.report.off = s.source.hookState(s.after), s.source.tools, s.source.switchedOff(s.after)
		r.Files = append(r.Files, s.report)
	}
	for _, e := range edits {
		if r.Preview && e.changes() {
			e.report.Diff = difference(e.report.Path, e.before(), e.after, hide)
		}
		if e.changes() || len(e.report.Kept) > 0 {
			r.Gateways = append(r.Gateways, e.report)
		}
	}
}

// step plans the changes of one file.
func (c Client) step(p Environment, src source, off disabled) (s *step, err error) {
	s = &step{source: src, report: File{Path: src.path, State: StateAbsent}}
	if s.held, err = loadFile(src.path); err != nil {
		return s, err
	}
	if s.old, err = p.recordOf(src.path); err != nil {
		return s, err
	}
	hooks := s.wantsHooks(p)
	if s.held == nil && !hooks && (s.old == nil || !s.old.Missing) {
		s.old = nil // the backup has what was in it
		return s, nil
	}
	if err := s.restore(p); err != nil {
		return s, err
	}
	s.after = s.base
	if src.content != "" {
		err = s.replace(c, hooks)
	} else {
		err = s.edit(c, p, off, hooks)
	}
	if err != nil {
		return s, err
	}
	s.complete(p)
	if s.report.State == StateAbsent && s.after != nil {
		s.report.State = StateEmpty
	}
	if s.report.Changed = !sameContent(s.after, s.held.content()); s.report.Changed && s.held != nil {
		err = s.held.writable()
	}
	return s, err
}

// restore computes what was in the file before it was connected.
func (s *step) restore(p Environment) (err error) {
	s.base, s.exact = s.held.content(), true
	if s.old == nil || s.held == nil {
		return nil
	}
	if s.base, s.exact, _, err = p.before(s.old, s.held); err != nil {
		return err
	}
	if !s.exact && !bytes.Equal(s.base, s.held.text) {
		s.report.Notes = append(s.report.Notes, "it changed since it was connected: it is connected anew, and disconnecting restores this version")
	}
	return nil
}

// edit plans the changes of a file with servers or hooks.
func (s *step) edit(c Client, p Environment, off disabled, hooks bool) error {
	changes, err := s.changes(c, p, off)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		if s.after, err = edited(s.source.format, s.base, changes); err != nil {
			return err
		}
	}
	if !hooks {
		return nil
	}
	return s.addHooks(c)
}

// complete fills the record with what it needs of the file as a whole.
func (s *step) complete(p Environment) {
	if s.new == nil || s.new == s.old {
		return
	}
	s.new.After, s.new.Missing = digest(s.after), s.base == nil
	if s.base != nil {
		s.new.Before = digest(s.base)
		s.report.Backup = backupFile(p.recordFile(s.source.path))
	}
	s.new.Folders = missingFolders(s.source.path)
	if s.old == nil {
		return
	}
	s.new.Folders = append(s.new.Folders, s.old.Folders...)
	if s.new.Prior = s.old.Prior; s.exact && s.old.After != s.new.After {
		s.new.Prior = s.old.After
	}
}

// changes plans the changes of each table.
func (s *step) changes(c Client, p Environment, off disabled) (all []change, err error) {
	if s.base == nil {
		return nil, nil
	}
	_, body, err := opened(s.base)
	if err != nil {
		return nil, err
	}
	s.report.State = StateEmpty
	if blank(body) || s.source.layout.key == "" || p.HooksOnly {
		return nil, nil
	}
	tables, err := s.source.format.tables(body, s.source.layout)
	if err != nil {
		return nil, err
	}
	r := s.newRecord(c)
	for _, t := range tables {
		routed, err := s.route(c, p, body, t, off)
		if err != nil {
			return nil, err
		}
		if len(routed.Servers) == 0 {
			continue
		}
		r.Tables = append(r.Tables, routed)
		ch := change{path: t.path, in: []serverText{{name: routed.Name, entry: routed.Entry}}}
		for _, server := range routed.Servers {
			ch.out = append(ch.out, server.Name)
		}
		all = append(all, ch)
	}
	switch {
	case len(r.Tables) > 0:
		s.new, s.report.State = r, StateRouted
	case len(s.report.Servers) > 0:
		s.report.State = StateDirect
	}
	return all, nil
}

// route decides on each server of a table.
func (s *step) route(c Client, p Environment, body []byte, t *table, off disabled) (r routedTable, err error) {
	scope, project := s.source.scope, s.source.project
	if t.project != "" {
		scope, project = Local, t.project
	}
	r = routedTable{Path: t.path, Scope: scope, Project: project, Name: scope.name(), Gateway: p.gateway(scope, project)}
	speak := &variableRewriter{variableSyntax: c.dialect, client: c.title, home: p.Home, project: project}
	var taking *server // the first one
	for _, is := range t.servers {
		e, why := c.importServer(is, speak, off, scope, project)
		told := Server{Name: is.name, Scope: scope, Project: project, Why: why}
		if why == "" {
			told.Gateway, told.GatewayName = r.Gateway, renamed(is.name)
			r.Servers = append(r.Servers, removedServer{is.name, told.GatewayName, is.raw, is.entry, e})
			line, column := position(body, is.at)
			s.added = append(s.added, movedServer{r.Gateway, gatewayName(is.name), e, fmt.Sprintf("that of %s at %s:%d:%d", c.title, s.source.path, line, column)})
			taking = is
		}
		s.report.Servers = append(s.report.Servers, told)
	}
	if own := t.find(r.Name); taking != nil && own != nil {
		return r, refuse(body, own.at, "there is a server %q, and no record of what it stands for: take it out, or give it another name", r.Name)
	}
	r.Entry = c.remit(p, r.Gateway, s.arguments(c, p, r), speak)
	r.Entry.setTimeout(r.Servers)
	return r, nil
}

// arguments returns the gateway's arguments beside its configuration: the
// workspace, the retention and the journal. An option that is not set keeps its previous
// value.
func (s *step) arguments(c Client, p Environment, r routedTable) (args []string) {
	given := [][2]string{{"--keep", p.Keep}, {"--keep-last", p.KeepLast}, {"--journal", p.Journal}}
	if r.Scope == User {
		given = append([][2]string{{"--workspace", p.Workspace}}, given...)
	}
	for _, g := range given {
		if value := cmp.Or(g[1], s.had(c, r, g[0])); value != "" {
			args = append(args, g[0], value)
		}
	}
	return args
}

// had returns an argument of the table's previous gateway entry.
func (s *step) had(c Client, r routedTable, flag string) string {
	if s.old == nil {
		return ""
	}
	for _, was := range s.old.Tables {
		if was.Name == r.Name && was.Scope == r.Scope {
			return argument(c.common(was.Entry), flag)
		}
	}
	return ""
}

// importServer returns a server as the gateway's configuration gets it, or why
// it stays.
func (c Client) importServer(s *server, speak *variableRewriter, off disabled, scope Scope, project string) (e entry, why string) {
	common := *s
	common.entry = c.common(s.entry)
	if isGateway(common.entry) {
		return nil, "it is a gateway already"
	}
	if why := off.why(scope, project, s.name); why != "" {
		return nil, why
	}
	before := slices.Clone(speak.names)
	if e, why = taken(&common, speak); why != "" {
		speak.names = before
	}
	return e, why
}

// moved returns the servers that a record moved to gateway configurations.
func (r *record) moved() (all []movedServer) {
	for _, t := range r.Tables {
		for _, s := range t.Servers {
			all = append(all, movedServer{t.Gateway, s.behind(), s.Gateway, ""})
		}
	}
	return all
}

// record stores what Disconnect needs, before any change.
func (s *step) record(p Environment) error {
	if s.new == nil || s.old != nil && sameJSON(marshal(s.old), marshal(s.new)) {
		return nil
	}
	return p.keep(s.new, s.base)
}

func (s *step) write() error {
	switch {
	case !s.report.Changed:
		return nil
	case s.after == nil:
		return s.held.remove()
	case s.held == nil:
		if err := folder(filepath.Dir(s.source.path)); err != nil {
			return err
		}
		return write(s.source.path, nil, s.after, nil)
	default:
		return s.held.swap(s.after)
	}
}
