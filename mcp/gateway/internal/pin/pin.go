package pin

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
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
)

// pinFile is the name of the file that holds the pins.
const pinFile = "gateway-pins.json"

// Store holds the definitions that an operator accepted, or that existed at the
// first start.
type Store struct {
	path string // empty: only in memory

	mu   sync.Mutex // never held across a wait
	data file
	when time.Time // modification time of the read file
}

// file is the content of the file.
type file struct {
	V       int               `json:"v"`
	Servers map[string]Server `json:"servers"`
}

// Server holds the pins of one server.
type Server struct {
	Identity string                `json:"identity"` // name that the server reports
	Tools    map[string]Definition `json:"tools"`    // and other definitions, by key
	Offers   bool                  `json:"offers"`   // prompts and templates are pinned too

	Prompts   bool `json:"prompts"` // the server declares prompts, even if it has none now
	Resources bool `json:"resources"`
	Completes bool `json:"completes"` // the server declares completions
}

// Definition is a pinned definition.
type Definition struct {
	Digest     string          `json:"digest"`
	Definition json.RawMessage `json:"definition"`
}

// Open reads the pins in a folder, which it makes if it is missing. Without a
// folder, the pins are in memory.
func Open(folder string) (*Store, error) {
	p := &Store{data: file{V: 1, Servers: map[string]Server{}}}
	if folder == "" {
		return p, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	p.path = filepath.Join(folder, pinFile)
	_, err := p.Reread()
	return p, err
}

// Reread loads the file if another process wrote it since.
func (p *Store) Reread() (changed bool, err error) {
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
	var data file
	if err := canon.Decode(raw, &data); err != nil || data.V != 1 {
		return false, fmt.Errorf("%s is not a file of accepted definitions; move it away to accept what is there anew: %w", p.path, err)
	}
	if data.Servers == nil {
		data.Servers = map[string]Server{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data, p.when = data, info.ModTime()
	return true, nil
}

// Server returns the pins of a server. Ok is false at its first start.
func (p *Store) Server(name string) (s Server, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok = p.data.Servers[name]
	return s, ok
}

// put writes the pins of one server. They are durable when it returns.
func (p *Store) put(name string, s Server) error {
	if _, err := p.Reread(); err != nil { // another process may have accepted another server's meanwhile
		return err
	}
	p.mu.Lock()
	data := file{V: 1, Servers: map[string]Server{}}
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

func (p *Store) write(data file) (time.Time, error) {
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

// Item is a tool, a prompt, a template or a whole server whose current
// definition is not accepted.
type Item struct {
	Server, Tool  string // Tool is the key of the definition; empty for the server itself
	Why           string
	Before, After json.RawMessage // the definitions; nil if there is none
}

// Judge compares the definitions of a server with its pins.
func (p *Store) Judge(server string, d definition.Declared, strict bool) ([]Item, error) {
	have, known := p.Server(server)
	if !known && !strict {
		return nil, p.put(server, pinsOf(d, have))
	}
	if known && !have.Offers && !strict && !d.Partial && have.Identity == d.Identity { // pinned by a version that pinned only tools
		have = have.with(d.Of(definition.Prompts), d.Of(definition.Templates))
		have.Offers = true
		if err := p.put(server, have); err != nil {
			return nil, err
		}
	}
	if known && have.Identity == d.Identity && !have.can(d) { // needed before the server's next response
		if err := p.put(server, have.able(d)); err != nil {
			return nil, err
		}
	}
	var out []Item
	if known && have.Identity != d.Identity {
		out = append(out, Item{
			Server: server, Why: fmt.Sprintf("the server calls itself %q, and was %q before", d.Identity, have.Identity),
			Before: text(have.Identity), After: text(d.Identity),
		})
	}
	for _, def := range d.Defs {
		old, there := have.Tools[def.Key()]
		switch {
		case !there:
			out = append(out, Item{Server: server, Tool: def.Key(), Why: "it is new", After: def.Raw})
		case old.Digest != def.Digest:
			out = append(out, Item{Server: server, Tool: def.Key(), Why: "its definition was changed", Before: old.Definition, After: def.Raw})
		}
	}
	return out, nil
}

// Accept pins the current definitions of a server: the one of a key, or all
// with the server's identity.
func (p *Store) Accept(server string, d definition.Declared, only string) error {
	have, known := p.Server(server)
	if only == "" {
		return p.put(server, pinsOf(d, have))
	}
	at := slices.IndexFunc(d.Defs, func(def definition.Definition) bool { return def.Key() == only })
	if at < 0 {
		return fmt.Errorf("server %s has no %s", server, definition.Describe(only))
	}
	if known && have.Identity != d.Identity {
		return fmt.Errorf("server %s calls itself %q, and was %q before: accept the server, not one tool of it", server, d.Identity, have.Identity)
	}
	next := have.with(d.Defs[at : at+1])
	next.Identity = d.Identity
	next.Offers = have.Offers || !known
	return p.put(server, next)
}

// with returns the pins with further definitions.
func (s Server) with(more ...[]definition.Definition) Server {
	next := s
	next.Tools = maps.Clone(s.Tools)
	if next.Tools == nil {
		next.Tools = map[string]Definition{}
	}
	for _, d := range slices.Concat(more...) {
		next.Tools[d.Key()] = Definition{Digest: d.Digest, Definition: d.Raw}
	}
	return next
}

// able returns the pins with the current catalog capabilities of the server. It
// removes none, as a gateway with another configuration can serve them.
func (s Server) able(d definition.Declared) Server {
	s.Prompts, s.Resources, s.Completes = s.Prompts || d.Prompts, s.Resources || d.Reads, s.Completes || d.Completes
	return s
}

// can reports whether the catalog capabilities of a server are pinned.
func (s Server) can(d definition.Declared) bool {
	next := s.able(d)
	return s.Prompts == next.Prompts && s.Resources == next.Resources && s.Completes == next.Completes
}

// pinsOf returns pins of all definitions of a server. Unreadable kinds keep
// their pins.
func pinsOf(d definition.Declared, have Server) Server {
	s := Server{Identity: d.Identity, Offers: !d.Partial || have.Offers}.able(d).with(d.Defs)
	for key, pin := range have.Tools {
		if _, there := s.Tools[key]; d.Partial && !there && definition.KindOf(key) != definition.Tools {
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
