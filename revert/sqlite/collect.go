package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// Collect drops the blobs that no entry names, empties the write-ahead log, and
// where nobody else has the journal open gives room in the database back. It may
// run beside others, and die anywhere: the next one goes on. Blobs are dropped
// inside a transaction that writes, in which what was named since the reading
// began is read too, and nobody can name more.
func (j *Journal) Collect(ctx context.Context, gone []effect.BlobRef) (journal.Collected, error) {
	if err := j.usable(ctx); err != nil {
		return journal.Collected{}, err
	}
	if failed := j.failed.Load(); failed != nil {
		return journal.Collected{}, *failed
	}
	c := collecting{j: j, gone: map[string]bool{}}
	for _, ref := range gone {
		c.gone[ref.Digest] = true
	}
	err := c.run(ctx)
	return c.out, err
}

type collecting struct {
	j     *Journal
	gone  map[string]bool // these were named, and go also where they are new
	named *scratch
	alone bool // nobody else has the journal open
	conn  *sql.Conn
	out   journal.Collected
}

func (c *collecting) run(ctx context.Context) (err error) {
	if c.named, err = newScratch(ctx); err != nil {
		return explain(err)
	}
	defer func() { err = errors.Join(err, c.named.close()) }()
	before, err := c.j.stored()
	if err != nil {
		return err
	}
	read, err := c.j.size(ctx)
	if err != nil {
		return c.j.because(ctx, err)
	}
	if err := c.mark(ctx, 0); err != nil {
		return err
	}
	// No connection of the writer, which others may be using: it waits for this
	// transaction like one of another process.
	db, err := sql.Open("sqlite", c.j.dsn(writerPragmas()...))
	if err != nil {
		return explain(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if c.conn, err = connect(ctx, db, c.j.wait); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.conn.Close()) }()
	if err := c.drop(ctx, read); err != nil {
		return err
	}
	if err := c.empty(ctx); err != nil {
		return err
	}
	if c.out.Size, err = c.j.stored(); err == nil {
		c.out.Freed = max(before-c.out.Size, 0)
	}
	return err
}

func (c *collecting) mark(ctx context.Context, after int64) error {
	return journal.Blobs(ctx, c.j, after, func(ref effect.BlobRef) error { return c.named.add(ctx, ref.Digest) })
}

// drop removes what is not named. Files go before the transaction ends, which
// keeps everybody out who would name them.
func (c *collecting) drop(ctx context.Context, read int64) error {
	if err := retryBusy(ctx, c.j.wait, func() error { return exec(c.conn, "BEGIN IMMEDIATE") }); err != nil {
		return err
	}
	err := c.mark(ctx, read)
	if err == nil {
		c.alone, err = c.j.alone()
	}
	if err == nil {
		err = c.dropRows(ctx)
	}
	if err == nil {
		err = c.dropFiles(ctx)
	}
	if err != nil {
		_ = exec(c.conn, "ROLLBACK") // the first error counts
		return err
	}
	return exec(c.conn, "COMMIT")
}

func (c *collecting) dropRows(ctx context.Context) error {
	for after := int64(0); ; {
		var digest string
		var size int64
		row := c.conn.QueryRowContext(ctx, "SELECT rowid, digest, size FROM blobs WHERE rowid > ? ORDER BY rowid LIMIT 1", after)
		if err := row.Scan(&after, &digest, &size); errors.Is(err, sql.ErrNoRows) {
			return nil
		} else if err != nil {
			return explain(err)
		}
		named, err := c.named.has(ctx, digest)
		if err != nil {
			return explain(err)
		}
		if named {
			continue
		}
		if _, err := c.conn.ExecContext(context.WithoutCancel(ctx), "DELETE FROM blobs WHERE rowid = ?", after); err != nil {
			return explain(err)
		}
		c.out.Blobs, c.out.Bytes = c.out.Blobs+1, c.out.Bytes+size
	}
}

// young is how long a file that nobody names is left alone beside others, and where
// this process has kept it: content is kept first and named then.
const young = time.Hour

func (c *collecting) dropFiles(ctx context.Context) error {
	return ignoreMissing(eachFile(filepath.Join(c.j.dir, "blobs"), func(folder, short string) error {
		if short == "new" {
			return nil
		}
		dropped := false
		err := eachFile(folder, func(path, name string) error {
			digest := "sha256:" + name
			info, err := os.Lstat(path)
			if err != nil || !canon.Digest(digest).Valid() || !info.Mode().IsRegular() {
				return ignoreMissing(err) // fsck tells what does not belong here
			}
			named, err := c.named.has(ctx, digest)
			if err != nil || named {
				return explained(err)
			}
			awaited := !c.alone || c.j.kept.has(digest)
			if awaited && !c.gone[digest] && time.Since(info.ModTime()) < young {
				return nil
			}
			if err := os.Remove(path); err != nil {
				return ignoreMissing(err)
			}
			c.j.kept.forget(digest)
			dropped = true
			c.out.Blobs, c.out.Bytes = c.out.Blobs+1, c.out.Bytes+info.Size()
			return nil
		})
		if err == nil && dropped {
			err = syncFolder(folder)
		}
		return err
	}))
}

// empty gives room back and truncates the write-ahead log, in which pages stand
// as they were before.
func (c *collecting) empty(ctx context.Context) error {
	var free int64
	if err := c.conn.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
		return explain(err)
	}
	if c.alone && free > 0 {
		// Where somebody comes meanwhile, or the disk has no room for a copy, the
		// free pages are used again instead.
		err := exec(c.conn, "VACUUM")
		if code := codeOf(err); err != nil && code != codeBusy && code != codeFull {
			return err
		}
	}
	wait := c.j.wait
	wait.limit = min(wait.limit, 5*time.Second)
	for {
		var busy, pages, moved int64
		err := c.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
		switch {
		case err == nil && busy == 0:
			return nil
		case err != nil && codeOf(err) != codeBusy:
			return explained(err)
		}
		if err := wait.pause(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.out.Waiting = "others are reading the journal, and its write-ahead log may still hold what was there before"
			return nil
		}
	}
}

// alone reports whether no other opening lives.
func (j *Journal) alone() (bool, error) {
	others := 0
	err := eachFile(j.owners(), func(path, name string) error {
		if name == j.Owner()+lockSuffix {
			return nil
		}
		locked, err := isLocked(path)
		if locked {
			others++
		}
		return err
	})
	return others == 0, err
}

// stored is the size of everything in the folder, but for the reserve.
func (j *Journal) stored() (n int64, err error) {
	err = filepath.WalkDir(j.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() && d.Name() != reserveName {
			n += info.Size()
		}
		return ignoreMissing(err)
	})
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", j.dir, err)
	}
	return n, nil
}
