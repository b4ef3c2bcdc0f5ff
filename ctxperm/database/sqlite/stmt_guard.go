package sqlite

import (
	"fmt"
	"slices"
	"strings"

	lib "modernc.org/sqlite/lib"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/perm"
)

// opsTable is this package's own table. No statement of a call can access it.
const opsTable = "remit_ops"

// stmtGuard decides each action of the SQLite compiler. The zero stmtGuard
// denies all. SQLite calls it on the goroutine that uses the connection.
type stmtGuard struct {
	mode    mode
	writes  bool                   // statements may change rows
	seen    []engine.Access        // in mode looking: the accesses so far
	known   map[engine.Access]bool // the permitted accesses
	refused error                  // the first refusal
}

type mode uint8

const (
	shut      mode = iota
	own            // permits statements of this package
	looking        // compiles without running, and records accesses
	enforcing      // permits only granted accesses
)

// open permits statements of this package until the result is called.
func (g *stmtGuard) open() (back func()) {
	was := g.mode
	g.mode = own
	return func() { g.mode = was }
}

// look starts to record the accesses of a statement.
func (g *stmtGuard) look(writes bool) (back func()) {
	g.mode, g.writes, g.seen, g.refused, g.known = looking, writes, nil, nil, nil
	return func() { g.mode = shut }
}

// enforce permits only the recorded and authorized accesses.
func (g *stmtGuard) enforce() (back func()) {
	g.known = make(map[engine.Access]bool, len(g.seen))
	for _, a := range g.seen {
		g.known[a] = true
	}
	g.mode, g.refused = enforcing, nil
	return func() { g.mode = shut }
}

func (g *stmtGuard) authorize(action int32, a1, a2, db, _ string) int32 {
	switch g.mode {
	case own:
		return lib.SQLITE_OK
	case looking, enforcing:
	case shut:
		return lib.SQLITE_DENY
	}
	a, why := g.access(action, a1, a2, db)
	switch {
	case why == pass:
		return lib.SQLITE_OK
	case why != "":
		return g.refuse(why)
	case g.mode == looking:
		if !slices.Contains(g.seen, a) {
			g.seen = append(g.seen, a)
		}
		return lib.SQLITE_OK
	case g.known[a] || g.shadow(a):
		return lib.SQLITE_OK
	default:
		return g.refuse("only one statement is run, and it touches what it did not when it was decided")
	}
}

// shadow reports whether a table stores a virtual table that may be read, such
// as the index of a full text search.
func (g *stmtGuard) shadow(a engine.Access) bool {
	if a.Action != perm.Read {
		return false
	}
	for k := range g.known {
		if k.Action == perm.Read && k.Table != "" && strings.HasPrefix(a.Table, k.Table+"_") && !g.writes {
			return true
		}
	}
	return false
}

func (g *stmtGuard) refuse(why string) int32 {
	if g.refused == nil {
		g.refused = fmt.Errorf("%w: %s", engine.ErrRefused, why)
	}
	return lib.SQLITE_DENY
}

// pass means that an action needs no access.
const pass = "pass"

const (
	noSchema = "the statement changes the schema, which cannot be reverted row by row; run it outside of remit"
	noText   = "transactions are begun and ended by the call itself, not by a statement"
)

// access returns the access of an action, or why no statement may perform it.
func (g *stmtGuard) access(action int32, a1, a2, db string) (engine.Access, string) {
	switch action {
	case lib.SQLITE_SELECT, lib.SQLITE_RECURSIVE:
		return engine.Access{}, pass
	case lib.SQLITE_FUNCTION:
		return engine.Access{}, function(a2)
	case lib.SQLITE_READ:
		if name, ok := strings.CutPrefix(strings.ToLower(a1), "pragma_"); ok {
			return pragma(name, "x")
		}
		return g.table(perm.Read, "select", a1, db)
	case lib.SQLITE_INSERT:
		return g.table(perm.Write, "insert", a1, db)
	case lib.SQLITE_UPDATE:
		return g.table(perm.Write, "update", a1, db)
	case lib.SQLITE_DELETE:
		return g.table(perm.Write, "delete", a1, db)
	case lib.SQLITE_PRAGMA:
		return pragma(strings.ToLower(a1), a2)
	case lib.SQLITE_TRANSACTION, lib.SQLITE_SAVEPOINT:
		return engine.Access{}, noText
	case lib.SQLITE_ATTACH, lib.SQLITE_DETACH:
		return engine.Access{}, "other files cannot be attached: configure them as databases of their own"
	default: // CREATE, DROP, ALTER, REINDEX, ANALYZE and actions added to SQLite later
		return engine.Access{}, noSchema
	}
}

func (g *stmtGuard) table(action perm.Action, statement, name, db string) (engine.Access, string) {
	switch {
	case strings.EqualFold(name, opsTable):
		return engine.Access{}, "the table " + opsTable + " is how remit knows what committed; no call reaches it"
	case action != perm.Read && strings.HasPrefix(strings.ToLower(name), "sqlite_"):
		return engine.Access{}, noSchema
	case action != perm.Read && !g.writes:
		return engine.Access{}, "a query only reads; use sql_execute"
	case strings.EqualFold(db, "temp"):
		return engine.Access{}, "temporary tables end with the call, so that they are of no use"
	case hidden[strings.ToLower(name)]:
		return engine.Access{}, "the table " + name + " shows the pages of the file, past all grants"
	}
	return engine.Access{Action: action, Table: name, Statement: statement}, ""
}

// hidden lists tables that read the file itself.
var hidden = map[string]bool{"sqlite_dbpage": true, "sqlite_dbdata": true, "sqlite_dbptr": true, "dbstat": true}

// pragmas lists those that describe the schema; false: only without an
// argument, which sets it.
var pragmas = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_list": true, "index_info": true, "index_xinfo": true,
	"foreign_key_list": true, "encoding": false, "user_version": false, "application_id": false,
}

func pragma(name, argument string) (engine.Access, string) {
	if name == "data_version" && argument == "" { // full text search asks whether its index changed
		return engine.Access{}, pass
	}
	if takes, ok := pragmas[name]; ok && (takes || argument == "") {
		return engine.Access{Action: perm.List}, ""
	}
	return engine.Access{}, "of the PRAGMAs only those that describe tables can be used"
}

func function(name string) string {
	switch strings.ToLower(name) {
	case "load_extension", "fts3_tokenizer", "edit", "readfile", "writefile":
		return "the function " + name + " reaches outside of the database"
	default:
		return pass
	}
}
