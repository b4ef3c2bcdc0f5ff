package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// emptyGateway is a configuration that connecting begins, and that disconnecting removes
// when nothing else came into it.
const emptyGateway = "{\n  \"mcpServers\": {}\n}\n"

// ConflictError is two servers of one name that one gateway cannot have both.
type ConflictError struct {
	Name       string
	One, Other string // descriptions of the servers with their files
	Gateway    string // the configuration
}

// Error names both.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("there are two servers %q: %s, and %s", e.Name, e.One, e.Other)
}

// movedServer is a server that enters or leaves a configuration of the gateway.
type movedServer struct {
	gateway, name string
	entry         entry
	from          string // a description of the server with its file
}

// gatewayEdit is the change of one configuration.
type gatewayEdit struct {
	held   *loadedFile // nil: none exists yet
	after  []byte
	from   map[string]string // files of the added servers
	added  map[string]entry  // as this client added them; nil: they existed
	report Gateway
}

// gatewayEdits plans the changes of the configurations, when some servers enter
// and others, which this client added earlier, leave.
func gatewayEdits(come, gone []movedServer, others []*record) (all []*gatewayEdit, err error) {
	var paths []string
	for _, m := range slices.Concat(come, gone) {
		if !slices.Contains(paths, m.gateway) {
			paths = append(paths, m.gateway)
		}
	}
	for _, path := range paths {
		of := func(m movedServer) bool { return m.gateway != path }
		e, err := gatewayEditOf(path, slices.DeleteFunc(slices.Clone(come), of), slices.DeleteFunc(slices.Clone(gone), of), others)
		if err != nil {
			return nil, inFile(path, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func gatewayEditOf(path string, come, gone []movedServer, others []*record) (*gatewayEdit, error) {
	e := &gatewayEdit{report: Gateway{Path: path}, from: map[string]string{}, added: map[string]entry{}}
	var err error
	if e.held, err = loadFile(path); err != nil {
		return nil, err
	}
	text := []byte(emptyGateway)
	if e.held != nil && !blank(bytes.TrimPrefix(e.held.text, byteOrderMark)) {
		text = e.held.text
	}
	_, body, err := opened(text)
	if err != nil {
		return nil, err
	}
	tables, err := jsonFormat{}.tables(body, layout{key: "mcpServers"})
	if err != nil {
		return nil, err
	}
	is := &table{}
	if len(tables) > 0 {
		is = tables[0]
	}
	rules, c := serversWithEntries(body), change{path: []string{"mcpServers"}}
	for _, m := range come {
		if err := e.addServer(&c, m, body, is, gone, others); err != nil {
			return nil, err
		}
	}
	for _, m := range gone {
		if !slices.ContainsFunc(come, func(other movedServer) bool { return other.name == m.name }) {
			e.goes(&c, m, is, others, rules)
		}
	}
	e.after, err = edited(jsonFormat{}, text, []change{c})
	return e, err
}

// addServer adds a server, if it is missing, or is as this client added it.
func (e *gatewayEdit) addServer(c *change, m movedServer, body []byte, is *table, gone []movedServer, others []*record) error {
	for _, p := range c.in {
		if p.name == m.name && !p.entry.sameServer(m.entry) {
			return &ConflictError{m.name, m.from, e.from[m.name], m.gateway}
		}
		if p.name == m.name {
			return nil
		}
	}
	if err := e.alike(*c, is, m, gone); err != nil {
		return err
	}
	there := is.find(m.name)
	e.from[m.name], e.added[m.name] = m.from, m.entry
	if there == nil {
		c.in = append(c.in, serverText{name: m.name, entry: m.entry})
		e.report.Added = append(e.report.Added, m.name)
		return nil
	}
	whose := ownersOf(m, others)
	own := slices.IndexFunc(gone, func(old movedServer) bool { return old.name == m.name })
	if there.entry.sameServer(m.entry) {
		switch {
		case own >= 0:
			e.added[m.name] = gone[own].entry
		case len(whose) > 0:
			e.added[m.name] = there.entry
		default:
			e.added[m.name] = nil
		}
		return nil
	}
	if own >= 0 && there.entry.same(gone[own].entry) && len(whose) == 0 {
		c.out = append(c.out, m.name)
		c.in = append(c.in, serverText{name: m.name, entry: m.entry})
		return nil
	}
	line, column := position(body, there.at)
	other := fmt.Sprintf("the one at %s:%d:%d", m.gateway, line, column)
	if len(whose) > 0 {
		other += ", which came from " + whose[0]
	}
	return &ConflictError{m.name, m.from, other, m.gateway}
}

// serversWithEntries returns the servers for which a configuration has entries.
// For an unreadable configuration it returns none, so that servers can still be
// restored.
func serversWithEntries(body []byte) (names []string) {
	obj, _, err := parseJSON(body)
	for _, name := range []string{"remit", "servers"} {
		if err != nil || obj == nil {
			return nil
		}
		obj, err = inner(body, obj, name)
	}
	if err != nil || obj == nil {
		return nil
	}
	for _, m := range obj.Members {
		names = append(names, nameOf(m))
	}
	return names
}

// goes removes a server, if no other client uses it and it is as this client
// added it. It keeps a server with entries: without the server the gateway
// would reject the configuration, and its calls could not be reverted.
func (e *gatewayEdit) goes(c *change, m movedServer, is *table, others []*record, rules []string) {
	there, whose := is.find(m.name), ownersOf(m, others)
	switch {
	case there == nil, m.entry == nil: // removed, or the user's own
	case len(whose) > 0:
		e.report.Kept = append(e.report.Kept, fmt.Sprintf("%s, which is also from %s", m.name, whose[0]))
	case !there.entry.same(m.entry):
		e.report.Kept = append(e.report.Kept, m.name+", which was changed since")
	case slices.Contains(rules, m.name):
		e.report.Kept = append(e.report.Kept, m.name+", which has rules")
	default:
		c.out = append(c.out, m.name)
		e.report.Removed = append(e.report.Removed, m.name)
	}
}

// recordAdded notes in a record which servers it added to configurations.
func recordAdded(r *record, edits []*gatewayEdit) {
	for _, t := range r.Tables {
		for _, e := range edits {
			if e.report.Path != t.Gateway {
				continue
			}
			for i, s := range t.Servers {
				t.Servers[i].Gateway = e.added[s.behind()]
			}
		}
	}
}

// ownersOf returns the files of other records that added a server of this name
// to a configuration.
func ownersOf(m movedServer, others []*record) (whose []string) {
	for _, r := range others {
		for _, t := range r.Tables {
			here := func(s removedServer) bool { return s.behind() == m.name }
			if t.Gateway == m.gateway && slices.ContainsFunc(t.Servers, here) {
				whose = append(whose, titleOf(r.Client)+" ("+r.Path+")")
			}
		}
	}
	return whose
}

func titleOf(client string) string {
	if c, err := ClientByName(client); err == nil {
		return c.title
	}
	return client
}

// before returns the previous text, "" for none.
func (e *gatewayEdit) before() []byte {
	if e.held == nil {
		return nil
	}
	return e.held.text
}

// changes reports whether there is anything to write.
func (e *gatewayEdit) changes() bool {
	if e.held == nil {
		return string(e.after) != emptyGateway
	}
	return !bytes.Equal(e.held.text, e.after)
}

// apply writes a configuration, for the user alone: the environments of servers
// contain secrets.
func (e *gatewayEdit) apply() error {
	if !e.changes() {
		return nil
	}
	if e.held == nil {
		if err := folder(filepath.Dir(e.report.Path)); err != nil {
			return err
		}
		return write(e.report.Path, nil, e.after, nil)
	}
	if string(e.after) == emptyGateway && len(e.report.Removed) > 0 {
		err := os.Remove(e.held.real)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := e.held.writable(); err != nil {
		return err
	}
	return write(e.held.real, e.held.text, e.after, nil)
}
