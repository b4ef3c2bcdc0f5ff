package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// complete compares the entries with the head file.
func (f *fsck) complete(ctx context.Context) error {
	size, err := f.journal.size(ctx)
	if err != nil {
		return f.unlessDamage(err)
	}
	f.report.Missing = max(f.folder.mark.head.Size-size, 0)
	err = f.folder.complete(ctx, f.journal)
	if f.whole = err == nil; errors.Is(err, ErrIncomplete) {
		f.report.Incomplete = true
		f.problem("%w", err)
		return nil
	}
	return f.unlessDamage(err)
}

// structure runs SQLite's own check of its file.
func (f *fsck) structure(ctx context.Context) error {
	err := f.each(ctx, "PRAGMA integrity_check(1000)", func(rows *sql.Rows) error {
		var says string
		if err := rows.Scan(&says); err != nil {
			return err
		}
		if says != "ok" {
			f.problem("%s: %s", databaseName, says)
		}
		return nil
	})
	return f.unlessDamage(err)
}

// contract checks what any journal promises.
func (f *fsck) contract(ctx context.Context) error {
	o := f.options
	o.Named = func(ref effect.BlobRef) error {
		if f.options.Named != nil {
			if err := f.options.Named(ref); err != nil {
				return err
			}
		}
		return f.named.add(ctx, ref.Digest, 0)
	}
	report, err := revert.Fsck(ctx, f.journal, o)
	report.Problems += f.report.Problems
	f.report.FsckReport = report
	return f.unlessCounted(err)
}

// unlessCounted drops the error that only says that there were problems.
func (f *fsck) unlessCounted(err error) error {
	if err != nil && f.report.Problems > 0 && errors.Is(err, record.ErrDamaged) {
		return nil
	}
	return err
}

// unlessDamage turns damage that stopped a part of the check into a problem.
func (f *fsck) unlessDamage(err error) error {
	if err = explained(err); errors.Is(err, record.ErrDamaged) {
		f.problem("%w", err)
		return nil
	}
	return err
}

func explained(err error) error {
	if err == nil || codeOf(err) == 0 {
		return err
	}
	return explain(err)
}

// rows checks the small blobs.
func (f *fsck) rows(ctx context.Context) error {
	err := f.each(ctx, "SELECT digest, size, length(content) FROM blobs", func(rows *sql.Rows) error {
		var digest string
		var size, is int64
		if err := rows.Scan(&digest, &size, &is); err != nil {
			return err
		}
		if err := (effect.BlobRef{Digest: digest, Size: size}).Check(); err != nil || size != is || size > journal.InlineMax {
			f.problem("blob %q is filed with %d bytes and has %d", digest, size, is)
		}
		return f.countUnnamed(ctx, digest)
	})
	return f.unlessDamage(err)
}

func (f *fsck) countUnnamed(ctx context.Context, digest string) error {
	named, err := f.named.has(ctx, digest)
	if err == nil && !named {
		f.report.Unnamed++
	}
	return err
}

// files checks the large blobs, and reports foreign files in their folder.
func (f *fsck) files(ctx context.Context) error {
	return ignoreMissing(eachFile(filepath.Join(f.dir, "blobs"), func(path, short string) error {
		if short == "new" {
			return f.unfinished(path)
		}
		return eachFile(path, func(path, name string) error {
			digest := "sha256:" + name
			info, err := os.Lstat(path)
			switch {
			case err != nil:
				return ignoreMissing(err)
			case !canon.Digest(digest).Valid() || !strings.HasPrefix(name, short) || !info.Mode().IsRegular():
				f.problem("%s is not a blob's file", path)
				return nil
			}
			return f.countUnnamed(ctx, digest)
		})
	}))
}

// unfinished counts the files of openings that died while they stored a large
// blob.
func (f *fsck) unfinished(dir string) error {
	return eachFile(dir, func(_, name string) error {
		owner, _, _ := strings.Cut(name, ".")
		if err := checkOwner(owner); err != nil {
			f.problem("%s is not an unfinished blob: %w", filepath.Join(dir, name), err)
			return nil
		}
		alive, err := isLocked(filepath.Join(f.dir, "owners", owner+lockSuffix))
		if err == nil && !alive {
			f.report.Leftover++
		}
		return err
	})
}

func (f *fsck) each(ctx context.Context, query string, row func(*sql.Rows) error) error {
	rows, err := f.journal.reader.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err below returns the error
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// digestSet is a set of digests with the entries that name them, on disk: they
// may not fit in memory.
type digestSet struct {
	db                *sql.DB
	put, get, at, cut *sql.Stmt
}

// newScratch creates a database without a name, which SQLite removes by itself.
func newScratch(ctx context.Context) (*digestSet, error) {
	db, err := sql.Open("sqlite", "")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each connection would have its own database
	s := &digestSet{db: db}
	for _, query := range []string{"PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "CREATE TABLE seen (digest TEXT, pos INTEGER, PRIMARY KEY (digest, pos)) STRICT, WITHOUT ROWID"} {
		if err == nil {
			_, err = db.ExecContext(ctx, query)
		}
	}
	for query, stmt := range map[string]**sql.Stmt{
		"INSERT INTO seen VALUES (?, ?) ON CONFLICT DO NOTHING":           &s.put,
		"SELECT EXISTS (SELECT 1 FROM seen WHERE digest = ?)":             &s.get,
		"SELECT pos FROM seen WHERE digest = ? ORDER BY pos DESC LIMIT 1": &s.at,
		"DELETE FROM seen WHERE digest = ? AND pos = ?":                   &s.cut,
	} {
		if err == nil {
			*stmt, err = db.PrepareContext(ctx, query)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func (s *digestSet) add(ctx context.Context, digest string, pos int64) error {
	_, err := s.put.ExecContext(ctx, digest, pos)
	return err
}

// newest returns the position of the newest entry that names a digest, or 0.
func (s *digestSet) newest(ctx context.Context, digest string) (pos int64, err error) {
	if err = s.at.QueryRowContext(ctx, digest).Scan(&pos); errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return pos, err
}

func (s *digestSet) forget(ctx context.Context, digest string, pos int64) error {
	_, err := s.cut.ExecContext(ctx, digest, pos)
	return err
}

func (s *digestSet) has(ctx context.Context, digest string) (found bool, err error) {
	err = s.get.QueryRowContext(ctx, digest).Scan(&found)
	return found, err
}

func (s *digestSet) close() error {
	return errors.Join(s.put.Close(), s.get.Close(), s.at.Close(), s.cut.Close(), s.db.Close())
}
