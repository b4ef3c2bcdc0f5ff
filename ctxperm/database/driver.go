package database

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/perm"
)

// Kind is a kind of database, from a package below this one. The zero Kind
// opens nothing.
type Kind struct{ kind engine.Kind }

// Driver holds the databases of a runtime, by name. Pass it to the runtime with
// agent.Driver, and close it after the runtime.
type Driver struct {
	kinds []Kind
	named map[string]*source

	mu     sync.Mutex // never held across a wait
	others map[string]*source
	txns   map[callTxnKey]*callTxn
}

// source is one database.
type source struct {
	engine engine.Engine
	at     string // location without secrets
}

// New creates a driver of databases by name, each at a location such as
// sqlite:data/app.db. A name is a letter, digit or _ and up to 127 letters,
// digits and _.- more. The driver also opens databases that calls of other
// processes changed, to revert these changes. Their locations are stored
// without passwords. So a database that needs one must be named here again.
func New(kinds []Kind, databases map[string]string) (*Driver, error) {
	d := &Driver{kinds: slices.Clone(kinds), named: map[string]*source{}, others: map[string]*source{}, txns: map[callTxnKey]*callTxn{}}
	for _, name := range slices.Sorted(maps.Keys(databases)) {
		if _, err := perm.KindDB.Resource(name); err != nil {
			return nil, errors.Join(fmt.Errorf("database %q: %w", name, err), d.Close())
		}
		s, err := d.open(databases[name])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("database %s: %w", name, err), d.Close())
		}
		d.named[name] = s
	}
	return d, nil
}

func (d *Driver) open(at string) (*source, error) {
	scheme, _, ok := strings.Cut(at, ":")
	var known []string
	for _, k := range d.kinds {
		if k.kind == nil {
			continue
		}
		names := strings.Split(k.kind.Scheme(), " ")
		if ok && slices.Contains(names, scheme) {
			e, public, err := k.kind.Open(at)
			return &source{e, public}, err
		}
		known = append(known, names...)
	}
	return nil, fmt.Errorf("its location begins with none of the kinds that there are: %s", orNone(known))
}

// Names returns the names of the databases, sorted.
func (d *Driver) Names() []string { return slices.Sorted(maps.Keys(d.named)) }

// Close closes all connections.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, all := range []map[string]*source{d.named, d.others} {
		for _, s := range all {
			errs = append(errs, s.engine.Close())
		}
	}
	return errors.Join(errs...)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
