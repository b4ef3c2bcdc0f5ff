package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/atomicfile"
	"github.com/remit-dev/remit/internal/canon"
)

// pinFile is the name of the file that holds the pins.
const pinFile = "gateway-pins.json"

// pins are the definitions that an operator accepted, or that existed at the
// first start.
type pins struct {
	path string // empty: only in memory

	mu   sync.Mutex // never held across a wait
	data pin
	when time.Time // modification time of the read file
}

type pin struct {
	V       int                     `json:"v"`
	Servers map[string]pinnedServer `json:"servers"`
}

type pinnedServer struct {
	Identity string                      `json:"identity"` // name and version that the server reports
	Tools    map[string]pinnedDefinition `json:"tools"`    // and other definitions, by key
	Offers   bool                        `json:"offers"`   // prompts and templates are pinned too

	Prompts   bool `json:"prompts"` // the server declares prompts, even if it has none now
	Resources bool `json:"resources"`
	Completes bool `json:"completes"` // the server declares completions
}

type pinnedDefinition struct {
	Digest     string          `json:"digest"`
	Definition json.RawMessage `json:"definition"`
}

func openPins(folder string) (*pins, error) {
	p := &pins{data: pin{V: 1, Servers: map[string]pinnedServer{}}}
	if folder == "" {
		return p, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	p.path = filepath.Join(folder, pinFile)
	_, err := p.reread()
	return p, err
}

// reread loads the file if another process wrote it since.
func (p *pins) reread() (changed bool, err error) {
	if p.path == "" {
		return false, nil
	}
	info, err := os.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	same := info.ModTime().Equal(p.when)
	p.mu.Unlock()
	if same {
		return false, nil
	}
	raw, err := os.ReadFile(p.path)
	if err != nil {
		return false, err
	}
	var data pin
	if err := canon.Decode(raw, &data); err != nil || data.V != 1 {
		return false, fmt.Errorf("%s is not a file of accepted definitions; move it away to accept what is there anew: %w", p.path, err)
	}
	if data.Servers == nil {
		data.Servers = map[string]pinnedServer{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data, p.when = data, info.ModTime()
	return true, nil
}

// server returns the pins of a server. Ok is false at its first start.
func (p *pins) server(name string) (s pinnedServer, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok = p.data.Servers[name]
	return s, ok
}

// put writes the pins of one server. They are durable when it returns.
func (p *pins) put(name string, s pinnedServer) error {
	if _, err := p.reread(); err != nil { // another process may have accepted another server's meanwhile
		return err
	}
	p.mu.Lock()
	data := pin{V: 1, Servers: map[string]pinnedServer{}}
	for other, theirs := range p.data.Servers {
		data.Servers[other] = theirs
	}
	data.Servers[name] = s
	p.mu.Unlock()
	when, err := p.write(data)
	if err != nil {
		return fmt.Errorf("what was accepted of server %s: %w", name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data, p.when = data, when
	return nil
}

func (p *pins) write(data pin) (time.Time, error) {
	if p.path == "" {
		return time.Time{}, nil
	}
	raw, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return time.Time{}, err
	}
	if err := atomicfile.Replace(p.path, append(raw, '\n')); err != nil {
		return time.Time{}, err
	}
	info, err := os.Stat(p.path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// QuarantinedItem is a tool, a prompt, a template or a whole server whose
// current definition is not accepted.
type QuarantinedItem struct {
	Server, Tool  string // Tool is empty for the server itself, prompt:NAME for a prompt and template:URI for a template
	Why           string
	Before, After json.RawMessage // the definitions; nil if there is none
}

// judge compares the definitions of a server with its pins.
func (p *pins) judge(server string, d declared, strict bool) ([]QuarantinedItem, error) {
	have, known := p.server(server)
	if !known && !strict {
		return nil, p.put(server, pinsOf(d, have))
	}
	if known && !have.Offers && !strict && !d.partial && have.Identity == d.identity { // pinned by a version that pinned only tools
		have = have.with(d.of(prompts), d.of(templates))
		have.Offers = true
		if err := p.put(server, have); err != nil {
			return nil, err
		}
	}
	if known && have.Identity == d.identity && !have.can(d) { // needed before the server's next response
		if err := p.put(server, have.able(d)); err != nil {
			return nil, err
		}
	}
	var out []QuarantinedItem
	if known && have.Identity != d.identity {
		out = append(out, QuarantinedItem{
			Server: server, Why: fmt.Sprintf("the server calls itself %q, and was %q before", d.identity, have.Identity),
			Before: text(have.Identity), After: text(d.identity),
		})
	}
	for _, def := range d.defs {
		old, there := have.Tools[def.key()]
		switch {
		case !there:
			out = append(out, QuarantinedItem{Server: server, Tool: def.key(), Why: "it is new", After: def.raw})
		case old.Digest != def.digest:
			out = append(out, QuarantinedItem{Server: server, Tool: def.key(), Why: "its definition was changed", Before: old.Definition, After: def.raw})
		}
	}
	return out, nil
}

// accept pins the current definitions of a server: the one of a key, or all
// with the server's identity.
func (p *pins) accept(server string, d declared, only string) error {
	have, known := p.server(server)
	if only == "" {
		return p.put(server, pinsOf(d, have))
	}
	at := slices.IndexFunc(d.defs, func(def definition) bool { return def.key() == only })
	if at < 0 {
		return fmt.Errorf("server %s has no %s", server, named(only))
	}
	if known && have.Identity != d.identity {
		return fmt.Errorf("server %s calls itself %q, and was %q before: accept the server, not one tool of it", server, d.identity, have.Identity)
	}
	next := have.with(d.defs[at : at+1])
	next.Identity = d.identity
	next.Offers = have.Offers || !known
	return p.put(server, next)
}

// with returns the pins with further definitions.
func (s pinnedServer) with(more ...[]definition) pinnedServer {
	next := s
	next.Tools = maps.Clone(s.Tools)
	if next.Tools == nil {
		next.Tools = map[string]pinnedDefinition{}
	}
	for _, d := range slices.Concat(more...) {
		next.Tools[d.key()] = pinnedDefinition{Digest: d.digest, Definition: d.raw}
	}
	return next
}

// able returns the pins with the current catalog capabilities of the server. It
// removes none, as a gateway with another configuration can serve them.
func (s pinnedServer) able(d declared) pinnedServer {
	s.Prompts, s.Resources, s.Completes = s.Prompts || d.prompts, s.Resources || d.reads, s.Completes || d.completes
	return s
}

// can reports whether the catalog capabilities of a server are pinned.
func (s pinnedServer) can(d declared) bool {
	next := s.able(d)
	return s.Prompts == next.Prompts && s.Resources == next.Resources && s.Completes == next.Completes
}

// pinsOf returns pins of all definitions of a server. Unreadable kinds keep
// their pins.
func pinsOf(d declared, have pinnedServer) pinnedServer {
	s := pinnedServer{Identity: d.identity, Offers: !d.partial || have.Offers}.able(d).with(d.defs)
	for key, pin := range have.Tools {
		if _, there := s.Tools[key]; d.partial && !there && kindOf(key) != tools {
			s.Tools[key] = pin
		}
	}
	return s
}

func text(s string) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return raw
}
