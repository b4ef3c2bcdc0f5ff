package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// Query reads in a transaction that cannot write.
func (s *server) Query(ctx context.Context, st engine.Statement, ask engine.AuthorizeFunc, w engine.Page) (engine.Rows, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return engine.Rows{}, err
	}
	defer c.close()
	if err := c.do(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return engine.Rows{}, err
	}
	return c.query(ctx, st, ask, w)
}

// chunk is the number of rows per fetch.
const chunk = 50

// query opens a cursor, which accepts only one reading statement. It fetches
// rows after the accesses of the statement were authorized. Further accesses of
// functions are known only after they ran. The rows are shown only if these are
// granted, too.
func (c *connection) query(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, w engine.Page) (out engine.Rows, err error) {
	args, err := arguments(s)
	if err != nil {
		return out, err
	}
	known, err := c.planned(ctx, s, args)
	if err != nil {
		return out, err
	}
	for _, a := range known {
		if a.Statement != "select" {
			return out, fmt.Errorf("%w: a query only reads; use sql_execute", engine.ErrRefused)
		}
	}
	if err := ask(ctx, known); err != nil {
		return out, err
	}
	if err := c.ExecParams(ctx, "DECLARE remit_cursor NO SCROLL CURSOR FOR "+s.SQL, args, nil, nil, nil).Read().Err; err != nil {
		return out, err
	}
	if w.Skip > 0 {
		if err := c.do(ctx, "MOVE FORWARD "+strconv.Itoa(w.Skip)+" FROM remit_cursor"); err != nil {
			return out, err
		}
	}
	if out, err = c.fetch(ctx, w); err != nil {
		return engine.Rows{}, err
	}
	locks, err := c.locks(ctx)
	if err != nil {
		return engine.Rows{}, err
	}
	more, err := untrackedChanges(locks, known, c.own)
	if err == nil && len(more) > 0 {
		err = ask(ctx, more)
	}
	if err == nil {
		err = c.do(ctx, "CLOSE remit_cursor")
	}
	if err != nil {
		return engine.Rows{}, err
	}
	return out, nil
}

func (c *connection) fetch(ctx context.Context, w engine.Page) (out engine.Rows, err error) {
	out.Rows = [][]any{}
	size := 0
	for {
		want := min(chunk, w.Max-len(out.Rows)+1)
		r := c.ExecParams(ctx, "FETCH FORWARD "+strconv.Itoa(want)+" FROM remit_cursor", nil, nil, nil, nil)
		took := 0
		if out.Columns == nil {
			out.Columns = columns(r.FieldDescriptions())
		}
		for r.NextRow() {
			took++
			if out.More || len(out.Rows) == w.Max {
				out.More = true
				continue
			}
			row, n := rowOf(r.FieldDescriptions(), r.Values())
			if size += n; size > w.Bytes {
				out.More = true
				continue
			}
			out.Rows = append(out.Rows, row)
		}
		if _, err := r.Close(); err != nil {
			return out, err
		}
		if size > w.Bytes && len(out.Rows) == 0 {
			return out, tooLarge(size, w.Bytes)
		}
		if took < want || out.More {
			return out, nil
		}
	}
}

func tooLarge(size, limit int) error {
	return fmt.Errorf("%w: one row has %d bytes, and the limit is %d: select fewer columns, or parts by substr()", engine.ErrRefused, size, limit)
}
