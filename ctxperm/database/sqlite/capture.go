package sqlite

import (
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// The bounds of the changes of one call.
const (
	maxEvents = 200_000
	maxImages = 64 << 20 // bytes of row images
)

// event is a change of a row that SQLite announced.
type event struct {
	statement    string // insert, update, delete
	table        string
	oldID, newID int64
	old, now     []any
}

// capture records the changes of a connection. SQLite announces them on the
// goroutine that uses the connection.
type capture struct {
	on     bool
	events []event
	size   int
	err    error
}

func (c *connection) capture() (*capture, error) {
	k := &capture{}
	return k, c.Raw(func(dc any) error {
		r, ok := dc.(interface {
			RegisterPreUpdateHook(driver.PreUpdateHookFn)
		})
		if !ok {
			return errDriver
		}
		r.RegisterPreUpdateHook(k.note)
		return nil
	})
}

func (k *capture) note(d driver.SQLitePreUpdateData) {
	if !k.on || k.err != nil {
		return
	}
	if d.DatabaseName != "main" {
		k.err = fmt.Errorf("%w: it changed a table outside of the database", engine.ErrRefused)
		return
	}
	if len(k.events) == maxEvents || k.size > maxImages {
		k.err = fmt.Errorf("%w: it changes more than a call may, %d rows or %d MiB; do it in parts", engine.ErrRefused, maxEvents, maxImages>>20)
		return
	}
	e := event{table: d.TableName, oldID: d.OldRowID, newID: d.NewRowID}
	var errOld, errNew error
	switch d.Op {
	case lib.SQLITE_INSERT:
		e.statement = "insert"
		e.now, errNew = values(&d, true)
	case lib.SQLITE_UPDATE:
		e.statement = "update"
		e.old, errOld = values(&d, false)
		e.now, errNew = values(&d, true)
	default:
		e.statement = "delete"
		e.old, errOld = values(&d, false)
	}
	k.err = errors.Join(errOld, errNew)
	k.size += sizeOf(e.old)
	k.events = append(k.events, e)
}

// touched is a changed row with its previous image.
type touched struct {
	ref engine.Ref
	was engine.Image
}

// history holds the changes of a transaction, in order.
type history struct {
	rows  map[string]*touched
	order []*touched
}

// add adds a version of a row. Only the first one counts.
func (h *history) add(ref engine.Ref, was engine.Image) {
	name := ref.Name()
	if h.rows[name] != nil {
		return
	}
	if h.rows == nil {
		h.rows = map[string]*touched{}
	}
	row := &touched{ref, was}
	h.rows[name], h.order = row, append(h.order, row)
}

// take adds an event: the previous row, and the new one, which is another row
// if its key changed.
func (h *history) take(t *table, e event) {
	if e.old != nil {
		was := t.image(e.old, e.oldID)
		h.add(t.Ref(was), was)
	}
	if e.now != nil {
		h.add(t.Ref(t.image(e.now, e.newID)), nil)
	}
}
