package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// chunkSize is the size of the parts of large content.
const chunkSize = 256 << 10

// StoreContent stores content. More than InlineMax bytes become chunks. They
// are there when StoreContent returns: the transaction that gives them their
// digest is synced, and with it all before it.
func (j *Journal) StoreContent(ctx context.Context, r io.Reader) (journal.Blob, error) {
	if err := j.writable(ctx); err != nil {
		return journal.Blob{}, err
	}
	var up *upload
	blob, err := journal.ReadContent(ctx, r, func() (io.Writer, error) {
		up = &upload{ctx: ctx, journal: j}
		return up, up.begin()
	})
	if up == nil {
		return blob, err
	}
	if err == nil {
		err = up.finish(blob.Ref())
	}
	if err != nil {
		up.discard()
		return journal.Blob{}, err
	}
	return blob, nil
}

// upload stores content whose digest is not known yet. It holds no connection
// while it waits for the content, which may come from this journal.
type upload struct {
	ctx     context.Context //nolint:containedctx // io.Reader takes none
	journal *Journal
	id      int64
	n       int32
	buffer  []byte
}

func (u *upload) begin() error {
	return u.journal.again(u.ctx, func() error {
		return u.journal.pool.QueryRow(u.ctx, "INSERT INTO blobs (owner) VALUES ($1) RETURNING id", u.journal.id).Scan(&u.id)
	})
}

// Write stores each full chunk.
func (u *upload) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n := min(len(p)-done, chunkSize-len(u.buffer))
		u.buffer = append(u.buffer, p[done:done+n]...)
		done += n
		if len(u.buffer) == chunkSize {
			if err := u.flush(); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// flush stores a chunk without waiting for the disk: finish does.
func (u *upload) flush() error {
	if len(u.buffer) == 0 {
		return nil
	}
	data := u.buffer
	if bytes.Count(data, []byte{0}) == len(data) {
		data = nil
	}
	err := u.journal.again(u.ctx, func() error {
		return pgx.BeginFunc(u.ctx, u.journal.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(u.ctx, "SET LOCAL synchronous_commit = off"); err != nil {
				return err
			}
			_, err := tx.Exec(u.ctx, "INSERT INTO chunks (blob, n, size, data) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", u.id, u.n, len(u.buffer), data)
			return err
		})
	})
	u.n, u.buffer = u.n+1, u.buffer[:0]
	return err
}

// finish gives the content its digest. If the content exists already, it stays
// the one that is there, and counts as new.
func (u *upload) finish(ref effect.BlobRef) error {
	if err := u.flush(); err != nil {
		return err
	}
	for range maxConflicts {
		same := false
		err := u.journal.again(u.ctx, func() error {
			return pgx.BeginFunc(u.ctx, u.journal.pool, func(tx pgx.Tx) (err error) {
				same, err = u.name(tx, ref)
				return err
			})
		})
		if err == nil && same {
			u.discard()
		}
		if !isConflict(err) {
			return err
		}
	}
	return fmt.Errorf("journal: keep: other processes store and delete %s all the time", ref.Digest)
}

// name gives the content its digest, or finds that another one has it. Chunks
// that did not wait for the disk can be lost with a server that stopped since:
// so it counts them.
func (u *upload) name(tx pgx.Tx, ref effect.BlobRef) (same bool, err error) {
	tag, err := tx.Exec(u.ctx, "UPDATE blobs SET stored = now(), owner = $3, named = false WHERE digest = $1 AND size = $2 AND id <> $4", packDigest(ref.Digest), ref.Size, u.journal.id, u.id)
	if err != nil || tag.RowsAffected() > 0 {
		return err == nil, err
	}
	tag, err = tx.Exec(u.ctx, `UPDATE blobs SET digest = $2, size = $3, stored = now()
		WHERE id = $1 AND (SELECT count(*) = $4 AND sum(size) = $3 FROM chunks WHERE blob = $1)`, u.id, packDigest(ref.Digest), ref.Size, u.n)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("keep: %w", ErrLost)
	}
	return false, err
}

// discard deletes what did not become a blob. If it fails, a collector does it
// once this opening has ended.
func (u *upload) discard() {
	ctx := context.WithoutCancel(u.ctx)
	if tag, err := u.journal.pool.Exec(ctx, "DELETE FROM blobs WHERE id = $1 AND digest IS NULL", u.id); err == nil && tag.RowsAffected() > 0 {
		_, _ = u.journal.pool.Exec(ctx, "DELETE FROM chunks WHERE blob = $1", u.id)
	}
}

// OpenContent opens content, from its row or its chunks.
func (j *Journal) OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	if err := ref.Check(); err != nil {
		return nil, err
	}
	c := &chunks{ctx: ctx, journal: j}
	err := j.again(ctx, func() error {
		return j.pool.QueryRow(ctx, "SELECT id, data FROM blobs WHERE digest = $1", packDigest(ref.Digest)).Scan(&c.blob, &c.data)
	})
	if noRows(err) {
		return nil, fmt.Errorf("blob %s of %d bytes: %w", ref.Digest, ref.Size, journal.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	c.whole = c.data != nil
	return journal.CheckedContent(ref, c), nil
}

// chunks reads content chunk by chunk. It holds no connection in between.
type chunks struct {
	ctx     context.Context //nolint:containedctx // io.Reader takes none
	journal *Journal
	blob    int64
	n       int32
	data    []byte
	whole   bool // data is all that there is
}

func (c *chunks) Read(p []byte) (int, error) {
	for len(c.data) == 0 {
		if c.whole {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.data)
	c.data = c.data[n:]
	return n, nil
}

func (c *chunks) next() error {
	if err := c.journal.usable(c.ctx); err != nil {
		return err
	}
	var size int
	err := c.journal.again(c.ctx, func() error {
		return c.journal.pool.QueryRow(c.ctx, "SELECT size, data FROM chunks WHERE blob = $1 AND n = $2", c.blob, c.n).Scan(&size, &c.data)
	})
	switch {
	case noRows(err):
		c.whole = true
		return nil
	case err != nil:
		return err
	case size < 1 || size > chunkSize || c.data != nil && len(c.data) != size:
		return fmt.Errorf("%w: chunk %d has another size than it says", record.ErrDamaged, c.n)
	case c.data == nil:
		c.data = make([]byte, size)
	}
	c.n++
	return nil
}

func (c *chunks) Close() error {
	c.whole, c.data = true, nil
	return nil
}
