package sqlite

import (
	"errors"
	"reflect"
	"sync"
	"unsafe"

	"modernc.org/libc"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// The driver does not export three features: the authorizer, the switch for
// triggers, and old values with the bytes after a NUL. SQLite itself, as
// modernc.org/sqlite/lib, does. It needs the handle of a connection, which this
// file reads from the driver's value by field name. If a later version renames
// the fields, every connection fails, and so do the tests. No statement runs
// without a guard.

var errDriver = errors.New("this version of modernc.org/sqlite keeps its connection elsewhere; ctxperm/database/sqlite has to be adapted")

// handle is a connection in the form of SQLite's own functions.
type handle struct {
	tls *libc.TLS
	db  uintptr
}

func handleOf(dc any) (h handle, err error) {
	tls, db, err := fields(reflect.ValueOf(dc), "db")
	return handle{tls, db}, err
}

// fields reads the two fields of one of the driver's structs.
func fields(v reflect.Value, name string) (tls *libc.TLS, p uintptr, err error) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, 0, errDriver
	}
	t, f := v.FieldByName("tls"), v.FieldByName(name)
	if !t.IsValid() || t.Type() != reflect.TypeFor[*libc.TLS]() || !f.IsValid() || f.Kind() != reflect.Uintptr {
		return nil, 0, errDriver
	}
	return (*libc.TLS)(t.UnsafePointer()), uintptr(f.Uint()), nil
}

// guards holds the guards of open connections. A connection without a guard is
// refused.
var guards = struct {
	sync.Mutex // never held across a wait
	of         map[uintptr]*stmtGuard
}{of: map[uintptr]*stmtGuard{}}

// watch installs a guard on a connection.
func (h handle) watch(g *stmtGuard) error {
	guards.Lock()
	guards.of[h.db] = g
	guards.Unlock()
	f := authorizer
	// A function value is a pointer to its code. The driver passes its own
	// functions to SQLite in the same way.
	if rc := lib.Xsqlite3_set_authorizer(h.tls, h.db, *(*uintptr)(unsafe.Pointer(&f)), h.db); rc != lib.SQLITE_OK {
		h.unwatch()
		return errDriver
	}
	return nil
}

// unwatch removes the guard, because the next connection may have the same
// handle.
func (h handle) unwatch() {
	guards.Lock()
	defer guards.Unlock()
	delete(guards.of, h.db)
}

func authorizer(_ *libc.TLS, db uintptr, action int32, a1, a2, schema, within uintptr) int32 {
	guards.Lock()
	g := guards.of[db]
	guards.Unlock()
	if g == nil {
		return lib.SQLITE_DENY
	}
	return g.authorize(action, text(a1), text(a2), text(schema), text(within))
}

func text(p uintptr) string {
	if p == 0 {
		return ""
	}
	return libc.GoString(p)
}

// set sets one of SQLite's switches.
func (h handle) set(op int32, on int32) error {
	args := libc.NewVaList(on, uintptr(0))
	if args == 0 {
		return errDriver
	}
	defer libc.Xfree(h.tls, args)
	if rc := lib.Xsqlite3_db_config(h.tls, h.db, op, args); rc != lib.SQLITE_OK {
		return errDriver
	}
	return nil
}

// changes returns how many rows all statements of the connection have changed,
// including those of triggers and foreign keys.
func (h handle) changes() int64 { return lib.Xsqlite3_total_changes64(h.tls, h.db) }

// computed represents a value that is not stored. No cell has it.
type computed struct{}

// values returns the old or new row of a pre-update hook.
func values(d *driver.SQLitePreUpdateData, newRow bool) ([]any, error) {
	tls, db, err := fields(reflect.ValueOf(d), "pCsr")
	if err != nil {
		return nil, err
	}
	read := lib.Xsqlite3_preupdate_old
	if newRow {
		read = lib.Xsqlite3_preupdate_new
	}
	p := libc.Xmalloc(tls, 8)
	if p == 0 {
		return nil, errors.New("out of memory")
	}
	defer libc.Xfree(tls, p)
	out := make([]any, lib.Xsqlite3_preupdate_count(tls, db))
	for i := range out {
		switch rc := read(tls, db, int32(i), p); rc {
		case lib.SQLITE_OK:
			out[i] = valueAt(tls, libc.AtomicLoadPUintptr(p))
		case lib.SQLITE_RANGE: // a virtual generated column
			out[i] = computed{}
		default:
			return nil, errors.New("SQLite did not give the row that was changed")
		}
	}
	return out, nil
}

func valueAt(tls *libc.TLS, v uintptr) any {
	bytes := func(p uintptr) []byte {
		n := int(lib.Xsqlite3_value_bytes(tls, v))
		if p == 0 || n == 0 {
			return []byte{}
		}
		return append([]byte{}, libc.GoBytes(p, n)...)
	}
	switch lib.Xsqlite3_value_type(tls, v) {
	case lib.SQLITE_INTEGER:
		return lib.Xsqlite3_value_int64(tls, v)
	case lib.SQLITE_FLOAT:
		return lib.Xsqlite3_value_double(tls, v)
	case lib.SQLITE_TEXT:
		return string(bytes(lib.Xsqlite3_value_text(tls, v)))
	case lib.SQLITE_BLOB:
		return bytes(lib.Xsqlite3_value_blob(tls, v))
	default:
		return nil
	}
}
