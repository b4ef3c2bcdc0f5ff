package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// triggerName is the prefix of the triggers that exist for one transaction.
const triggerName = "~remit_"

// The bounds of the changes of one call.
const maxEvents = 200_000

// capture records the changes of a transaction. Its own row triggers write them
// into its own table.
type capture struct {
	c    *connection
	made bool
	on   map[string]*table // by name
	oids map[string]*table
	last int64 // last event that was read
}

func newCapture(t *tables) *capture {
	return &capture{c: t.c, on: map[string]*table{}, oids: map[string]*table{}}
}

// watch creates the triggers of a table.
func (k *capture) watch(ctx context.Context, t *table) error {
	if k.on[t.Name] != nil {
		return nil
	}
	if !k.made {
		if err := k.c.do(ctx, "CREATE TEMPORARY TABLE remit_rows (seq int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, rel oid, op text, was text[], will text[], old tid, new tid) ON COMMIT DROP"); err != nil {
			return fmt.Errorf("%w: the role may not create the temporary table that records changes: GRANT TEMPORARY ON DATABASE … TO the role: %w", engine.ErrRefused, err)
		}
		k.made = true
	}
	name := triggerName + t.oid
	function := "pg_temp." + quote(name)
	was, will := "ARRAY["+t.texts("OLD.")+"]", "ARRAY["+t.texts("NEW.")+"]"
	err := k.c.do(ctx, `CREATE FUNCTION `+function+`() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $remit$ BEGIN
		IF TG_OP = 'INSERT' THEN INSERT INTO pg_temp.remit_rows(rel, op, will, new) VALUES (TG_RELID, 'insert', `+will+`, NEW.ctid);
		ELSIF TG_OP = 'UPDATE' THEN INSERT INTO pg_temp.remit_rows(rel, op, was, will, old, new) VALUES (TG_RELID, 'update', `+was+`, `+will+`, OLD.ctid, NEW.ctid);
		ELSE INSERT INTO pg_temp.remit_rows(rel, op, was, old) VALUES (TG_RELID, 'delete', `+was+`, OLD.ctid); END IF;
		RETURN NULL; END $remit$`,
		"CREATE TRIGGER "+quote(name)+" AFTER INSERT OR UPDATE OR DELETE ON "+t.sql+" FOR EACH ROW EXECUTE FUNCTION "+function+"()")
	if err != nil {
		return fmt.Errorf("%w: the role may not create the trigger on %s that records changes: GRANT TRIGGER ON %s TO the role: %w", engine.ErrRefused, t.Name, t.sql, err)
	}
	k.on[t.Name], k.oids[t.oid] = t, t
	k.c.own[t.Name] = true
	return nil
}

// event is a change of a row from one version to another.
type event struct {
	t         *table
	op        string
	was, will engine.Image
	old, new  string // positions of the versions
}

// take reads the events since the last call.
func (k *capture) take(ctx context.Context) (out []event, err error) {
	if !k.made {
		return nil, nil
	}
	rows, err := k.c.all(ctx, "SELECT seq::text, rel::text, op, to_json(was)::text, to_json(will)::text, old::text, new::text FROM pg_temp.remit_rows WHERE seq > $1 ORDER BY seq LIMIT "+strconv.Itoa(maxEvents+1), strconv.FormatInt(k.last, 10))
	if err != nil {
		return nil, err
	}
	if len(rows) > maxEvents {
		return nil, fmt.Errorf("%w: it changes more than a call may, %d rows; do it in parts", engine.ErrRefused, maxEvents)
	}
	for _, r := range rows {
		e := event{t: k.oids[r[1]], op: r[2], old: r[5], new: r[6]}
		if e.t == nil {
			return nil, fmt.Errorf("%w: it changed a table that was not watched", engine.ErrRefused)
		}
		if e.was, err = image(r[3]); err == nil {
			e.will, err = image(r[4])
		}
		if err != nil {
			return nil, err
		}
		if k.last, err = strconv.ParseInt(r[0], 10, 64); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func image(text string) (engine.Image, error) {
	if text == "" {
		return nil, nil
	}
	var values []*string
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return nil, err
	}
	out := make(engine.Image, len(values))
	for i, v := range values {
		if v != nil {
			out[i] = "t" + *v
		}
	}
	return out, nil
}

// end drops the triggers before the transaction commits. It drops them with
// their functions, because only the table's owner may drop a trigger alone.
// From here on until the commit, other transactions cannot read the tables.
func (k *capture) end(ctx context.Context) error {
	for _, t := range k.on {
		if err := k.c.do(ctx, "DROP FUNCTION pg_temp."+quote(triggerName+t.oid)+"() CASCADE"); err != nil {
			return err
		}
	}
	return nil
}

// counted holds the server's counts of a table in this transaction.
type counted struct{ insert, update, delete int64 }

// counts returns the server's statistics of the transaction: changes in tables,
// and changes of the catalog, which a call may never change.
func (k *capture) counts(ctx context.Context) (tables map[string]counted, catalog int64, err error) {
	rows, err := k.c.all(ctx, `SELECT schemaname, relname, n_tup_ins::text, n_tup_upd::text, n_tup_del::text FROM pg_stat_xact_all_tables
		WHERE n_tup_ins + n_tup_upd + n_tup_del > 0 AND schemaname NOT LIKE 'pg\_toast%' AND schemaname NOT LIKE 'pg\_temp%'`)
	tables = map[string]counted{}
	for _, r := range rows {
		var n [3]int64
		for i := range n {
			if n[i], err = strconv.ParseInt(r[2+i], 10, 64); err != nil {
				return nil, 0, err
			}
		}
		if r[0] == "pg_catalog" {
			catalog += n[0] + n[1] + n[2]
			continue
		}
		tables[nameOf(r[0], r[1])] = counted{n[0], n[1], n[2]}
	}
	return tables, catalog, err
}

// history holds the changes of a transaction, in order.
type history struct {
	rows  map[string]*changed
	order []*changed
}

type changed struct {
	ref       engine.Ref
	was, will engine.Image
}

func (h *history) set(ref engine.Ref, was, will engine.Image) {
	name := ref.Name()
	if h.rows == nil {
		h.rows = map[string]*changed{}
	}
	if h.rows[name] == nil {
		h.rows[name] = &changed{ref: ref, was: was}
		h.order = append(h.order, h.rows[name])
	}
	h.rows[name].will = will
}

// add adds the events of a statement. A row whose key changed counts as deleted
// and inserted. The triggers of a table record their changes before the change
// that fired them. So add orders events by versions, which have distinct
// positions. Only the first and the last version of a row count.
func (h *history) add(events []event) {
	type place struct {
		t  *table
		at string
	}
	made, used := map[place]int{}, map[place]bool{}
	for i, e := range events {
		if e.will != nil {
			made[place{e.t, e.new}] = i
		}
		if e.was != nil {
			used[place{e.t, e.old}] = true
		}
	}
	for _, e := range events {
		if _, later := made[place{e.t, e.old}]; e.was != nil && !later {
			h.set(e.t.Ref(e.was), e.was, nil)
		}
	}
	for _, e := range events {
		if e.will != nil && !used[place{e.t, e.new}] {
			h.set(e.t.Ref(e.will), nil, e.will)
		}
	}
}
