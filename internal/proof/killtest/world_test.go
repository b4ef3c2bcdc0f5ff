//go:build linux

package killtest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// createWorkspace creates a workspace and a database.
func createWorkspace(dir string, workers int) error {
	old := time.Date(2024, 2, 3, 4, 5, 6, 789, time.UTC)
	for w := range workers {
		at := filepath.Join(dir, "ws", fmt.Sprint("w", w))
		if err := os.MkdirAll(filepath.Join(at, "sub", "deep"), 0o755); err != nil {
			return err
		}
		for name, text := range map[string]string{
			"a.txt": "alpha", "b.txt": "be bop", "c.txt": strings.Repeat("c", 70_000), "e.txt": "e", "p.txt": "p", "q.txt": "q", "r.txt": "r",
			"sub/d.txt": "d", "sub/deep/f.txt": "f",
		} {
			file := filepath.Join(at, name)
			err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, 0o640), os.Chtimes(file, old, old))
			if err != nil {
				return err
			}
			if err := unix.Setxattr(file, "user.about", []byte(name), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
				return err
			}
		}
		if err := os.Symlink("a.txt", filepath.Join(at, "link")); err != nil {
			return err
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "app.db"))
	if err != nil {
		return err
	}
	_, err = db.Exec("PRAGMA synchronous = OFF; CREATE TABLE a (id INTEGER PRIMARY KEY, worker INT, v TEXT); CREATE TABLE b (id INTEGER PRIMARY KEY, why TEXT)")
	for w := range workers {
		if err == nil {
			_, err = db.Exec("INSERT INTO a(worker, v) VALUES (?1, 'one'), (?1, 'two'), (?1, 'three')", w)
		}
	}
	return errors.Join(err, db.Close())
}

// look describes files and rows: the state that a revert restores.
func look(dir string) (map[string]string, error) {
	m := map[string]string{}
	ws := filepath.Join(dir, "ws")
	err := filepath.WalkDir(ws, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(ws, path)
		if err != nil {
			return err
		}
		m[name], err = describe(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "app.db"))
	if err != nil {
		return nil, err
	}
	return m, errors.Join(rowsOf(db, m), db.Close())
}

func describe(path string) (string, error) {
	var is unix.Stat_t
	if err := unix.Lstat(path, &is); err != nil {
		return "", err
	}
	text := fmt.Sprintf("%o", is.Mode)
	switch is.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return text, nil
	case unix.S_IFLNK:
		target, err := os.Readlink(path)
		return text + " -> " + target, err
	}
	data, err := os.ReadFile(path)
	about := make([]byte, 100)
	n, _ := unix.Getxattr(path, "user.about", about)
	return fmt.Sprintf("%s %d %v %s %s", text, is.Nlink, is.Mtim, about[:max(n, 0)], data), err
}

func rowsOf(db *sql.DB, m map[string]string) error {
	rows, err := db.Query("SELECT 'a ' || id, worker || ' ' || v FROM a UNION ALL SELECT 'b ' || id, why FROM b")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, value string
		if err := rows.Scan(&id, &value); err != nil {
			return err
		}
		m[id] = value
	}
	return rows.Err()
}

// difference describes the differences of two states briefly.
func difference(before, after map[string]string) string {
	var b strings.Builder
	short := func(s string) string { return s[:min(len(s), 120)] }
	for name, was := range before {
		if is, there := after[name]; !there {
			fmt.Fprintf(&b, "%q is gone; ", name)
		} else if is != was {
			fmt.Fprintf(&b, "%q was %q and is %q; ", name, short(was), short(is))
		}
	}
	for name, is := range after {
		if _, there := before[name]; !there {
			fmt.Fprintf(&b, "%q is new: %q; ", name, short(is))
		}
	}
	return b.String()
}
