package sqlite

import (
	"context"
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

// CollectGarbage deletes the blobs that no entry names, frees space in the
// database and empties the write-ahead log. It checks all blobs, or if gone is
// not nil those that gone lists. It works in steps of some milliseconds, each
// between the batches of other callers. It can die at any step: the next run
// continues. It deletes a blob inside a writing transaction, in which it also
// reads the newest entries, so no other process can name the blob.
func (j *Journal) CollectGarbage(ctx context.Context, gone []effect.BlobRef) (out journal.GCReport, err error) {
	if err := j.usable(ctx); err != nil {
		return out, err
	}
	if failed := j.failed.Load(); failed != nil {
		return out, *failed
	}
	if err := j.names.take(ctx); err != nil {
		return out, err
	}
	defer j.names.leave()
	c := gcRun{j: j, whole: gone == nil, gone: map[string]bool{}}
	for _, ref := range gone {
		c.gone[ref.Digest] = true
	}
	err = c.run(ctx)
	return c.out, err
}

type gcRun struct {
	j     *Journal
	whole bool
	gone  map[string]bool // named by the caller: deleted even if they are new
	out   journal.GCReport
}

// The size of a step, and the part of the database that stays free while others
// write, because they need that space again at once.
const (
	stepBlobs = 32
	stepPages = 64
	spareOf   = 8
)

func (c *gcRun) run(ctx context.Context) error {
	before, err := c.j.stored()
	if err != nil {
		return err
	}
	if err := c.j.names.read(ctx, c.j); err != nil {
		return err
	}
	if err := c.candidates(ctx); err != nil {
		return err
	}
	for _, step := range []func(w *writer) error{(*writer).index, (*writer).renewClaims} { // destroy the names of released claims
		if err := c.j.exclusively(ctx, step); err != nil {
			return err
		}
	}
	if err := c.compact(ctx); err != nil {
		return err
	}
	if err := c.shrink(ctx); err != nil {
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

// candidates deletes blobs that seem to be unnamed, in steps.
func (c *gcRun) candidates(ctx context.Context) error {
	var some []string
	add := func(digest string) error {
		named, err := c.j.names.has(ctx, c.j, digest)
		if err != nil || named {
			return err
		}
		if some = append(some, digest); len(some) < stepBlobs {
			return nil
		}
		err = c.drop(ctx, some)
		some = nil
		return err
	}
	var err error
	if c.whole {
		err = errors.Join(c.eachRow(ctx, add), c.eachBlobFile(add))
	}
	for digest := range c.gone {
		if err == nil {
			err = add(digest)
		}
	}
	if err != nil || len(some) == 0 {
		return err
	}
	return c.drop(ctx, some)
}

// eachRow calls fn with the digest of each small blob.
func (c *gcRun) eachRow(ctx context.Context, fn func(digest string) error) error {
	for after, page := int64(0), []string(nil); ; {
		rows, err := c.j.reader.QueryContext(ctx, "SELECT rowid, digest FROM blobs WHERE rowid > ? ORDER BY rowid LIMIT 256", after)
		if err != nil {
			return c.j.causeOf(ctx, err)
		}
		page = page[:0]
		for rows.Next() {
			digest := ""
			if err := rows.Scan(&after, &digest); err != nil {
				return errors.Join(explain(err), rows.Close())
			}
			page = append(page, digest)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return c.j.causeOf(ctx, err)
		}
		if len(page) == 0 {
			return nil
		}
		for _, digest := range page {
			if err := fn(digest); err != nil {
				return err
			}
		}
	}
}

// eachBlobFile calls fn with the digest of each large blob.
func (c *gcRun) eachBlobFile(fn func(digest string) error) error {
	return ignoreMissing(eachFile(filepath.Join(c.j.dir, "blobs"), func(folder, short string) error {
		if short == "new" {
			return nil
		}
		return eachFile(folder, func(_, name string) error {
			if digest := digestWord + name; canon.Digest(digest).Valid() { // fsck reports foreign files
				return fn(digest)
			}
			return nil
		})
	}))
}

// drop deletes unnamed blobs. It deletes the files before the transaction ends:
// the transaction excludes every process that could name them.
func (c *gcRun) drop(ctx context.Context, digests []string) error {
	folders := map[string]bool{}
	err := c.j.exclusively(ctx, func(w *writer) error {
		ctx := context.WithoutCancel(ctx) // it is short, and its end is known
		if err := w.begin(); err != nil {
			return err
		}
		if err := c.j.names.read(ctx, c.j); err != nil {
			return err
		}
		others, err := c.j.others()
		if err != nil {
			return err
		}
		for _, digest := range digests {
			named, err := c.j.names.has(ctx, c.j, digest)
			if err == nil && !named {
				err = errors.Join(c.dropRow(w, digest), c.dropFile(digest, others > 0, folders))
			}
			if err != nil {
				return err
			}
		}
		_, err = w.run(stmtCommit)
		return err
	})
	for folder := range folders {
		if err == nil {
			err = syncFolder(folder)
		}
	}
	return err
}

func (c *gcRun) dropRow(w *writer, digest string) error {
	var size int64
	found, err := w.find(stmtBlobSize, &size, digest)
	if err != nil || !found {
		return err
	}
	if _, err := w.run(stmtDropBlob, digest); err != nil {
		return err
	}
	c.out.Blobs, c.out.Bytes = c.out.Blobs+1, c.out.Bytes+size
	return nil
}

// unnamedMaxAge is how long an unnamed file stays if others have the journal open, or
// if this process stored it: content is stored first and named later.
const unnamedMaxAge = time.Hour

func (c *gcRun) dropFile(digest string, others bool, folders map[string]bool) error {
	path := blobPath(c.j.dir, effect.BlobRef{Digest: digest})
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ignoreMissing(err)
	}
	awaited := others || c.j.kept.has(digest)
	if awaited && !c.gone[digest] && time.Since(info.ModTime()) < unnamedMaxAge {
		return nil
	}
	if err := os.Remove(path); err != nil {
		return ignoreMissing(err)
	}
	c.j.kept.forget(digest)
	folders[filepath.Dir(path)] = true
	c.out.Blobs, c.out.Bytes = c.out.Blobs+1, c.out.Bytes+info.Size()
	return nil
}

// shrink returns free pages of the database to the disk: all of them, or those
// that other writers do not need soon.
func (c *gcRun) shrink(ctx context.Context) error {
	for before := int64(-1); ; {
		var free, pages int64
		row := c.j.reader.QueryRowContext(ctx, "SELECT (SELECT freelist_count FROM pragma_freelist_count), (SELECT page_count FROM pragma_page_count)")
		if err := row.Scan(&free, &pages); err != nil {
			return c.j.causeOf(ctx, err)
		}
		spare := int64(0)
		if !c.whole {
			spare = pages / spareOf
		}
		if free <= spare || free == before {
			return nil
		}
		before = free
		err := c.j.exclusively(ctx, func(w *writer) error {
			_, err := w.conn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(free-spare, stepPages)))
			return err
		})
		if codeOf(err) == codeFull { // the free pages are used again instead
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// empty truncates the write-ahead log, which holds old copies of pages.
func (c *gcRun) empty(ctx context.Context) error {
	wait := c.j.wait
	wait.limit = min(wait.limit, 5*time.Second)
	for {
		var busy, pages, moved int64
		err := c.j.exclusively(ctx, func(w *writer) error {
			return w.conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
		})
		if err != nil || busy == 0 {
			return err
		}
		if err := wait.pause(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.out.Waiting = "other processes read the journal, and its write-ahead log may still contain erased data"
			return nil
		}
	}
}

// exclusively runs a step on the writing connection while no batch is stored. A
// failed step leaves no change.
func (j *Journal) exclusively(ctx context.Context, step func(w *writer) error) error {
	r := newRequest(journal.Batch{})
	r.alone = true
	if !j.queue.join(r) {
		return errClosed
	}
	select {
	case <-ctx.Done():
		j.queue.leave(r)
		return context.Cause(ctx)
	case <-r.wake:
	}
	j.queue.leave(r)
	defer j.queue.resign()
	if failed := j.failed.Load(); failed != nil {
		return *failed
	}
	return retryBusy(ctx, j.wait, func() error {
		w, err := j.openWriter(ctx)
		if err != nil {
			return err
		}
		if err = w.setSync(false); err == nil { // the step can be repeated
			err = step(w)
		}
		if err == nil || codeOf(err) == codeBusy {
			return err
		}
		return j.abandon(err)
	})
}

// others returns the number of other live openings.
func (j *Journal) others() (n int, err error) {
	err = eachFile(j.owners(), func(path, name string) error {
		if name == j.Owner()+lockSuffix {
			return nil
		}
		locked, err := isLocked(path)
		if locked {
			n++
		}
		return err
	})
	return n, err
}

// stored returns the size of everything in the folder, except for the reserve.
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
