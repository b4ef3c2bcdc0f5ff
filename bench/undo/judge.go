package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // for reading the database
)

// itemState is one item of a world: its state, and the time of a file. Times are
// separate, because most methods do not restore them.
type itemState struct{ is, time string }

// snapshot is a world by the names of its items: "file NAME", "row TABLE KEY",
// "item NAME". A missing name does not exist.
type snapshot map[string]itemState

// look describes everything that an effect can reach: type, bits, bytes, links,
// extended attributes and holes of each file, .git among them; each row and
// each table; each object of the service. It does not know the actor of a
// change.
func (w *testEnv) look() (snapshot, error) {
	all := snapshot{}
	err := errors.Join(lookAtFiles(all, "file ", w.workspace), lookAtFiles(all, "outside ", w.outside), lookAtRows(all, w.database))
	for name, body := range w.service.all() {
		all["item "+name] = itemState{is: body}
	}
	return all, err
}

func lookAtFiles(all snapshot, prefix, root string) error {
	names := map[[2]uint64][]string{} // of one file
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s := itemState{is: fmt.Sprintf("%o", st.Mode)} // includes the type
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			sum, err := digest(path)
			if err != nil {
				return err
			}
			s.is += fmt.Sprintf(" %d %s", st.Size, sum)
			if st.Size > 1<<20 && st.Blocks*512 < st.Size/2 {
				s.is += " sparse"
			}
			s.time = fmt.Sprint(st.Mtim.Nano())
			if st.Nlink > 1 {
				id := [2]uint64{st.Dev, st.Ino}
				names[id] = append(names[id], prefix+name)
			}
		case unix.S_IFLNK:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			s.is += " -> " + to
			s.time = fmt.Sprint(st.Mtim.Nano())
		}
		attrs, err := attributes(path)
		s.is += attrs
		all[prefix+name] = s
		return err
	})
	for _, same := range names {
		slices.Sort(same)
		for _, name := range same {
			s := all[name]
			s.is += " one file with " + strings.Join(same, ", ")
			all[name] = s
		}
	}
	return err
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// attributes returns the user attributes.
func attributes(path string) (text string, err error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	if errors.Is(err, unix.ENOTSUP) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	names := strings.Split(string(buf[:n]), "\x00")
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf(" %s=%q", name, value[:n])
	}
	return text, nil
}

// lookAtRows reads every table except for the one in which remit records
// commits.
func lookAtRows(all snapshot, path string) (err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tables := map[string]string{}
	if err := each(db, "SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE tbl_name <> 'remit_ops' AND type IN ('table', 'index', 'trigger', 'view')", func(cells []string) {
		tables[cells[0]] = cells[1]
		all["schema "+cells[0]] = itemState{is: cells[1]}
	}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if !strings.HasPrefix(tables[name], "CREATE TABLE") {
			continue
		}
		err = errors.Join(err, each(db, `SELECT rowid, * FROM "`+name+`"`, func(cells []string) {
			all["row "+name+" "+cells[0]] = itemState{is: strings.Join(cells, " | ")}
		}))
	}
	return err
}

func each(db *sql.DB, query string, do func(cells []string)) (err error) {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	cols, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, into := make([]any, len(cols)), make([]any, len(cols))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		cells := make([]string, len(cols))
		for i, v := range values {
			cells[i] = fmt.Sprintf("%T %v", v, v)
			if s, ok := v.(string); ok && query[:12] == "SELECT name," {
				cells[i] = s
			}
		}
		do(cells)
	}
	return rows.Err()
}

// differ returns the names of the items that differ in two worlds, without
// times.
func differ(a, b snapshot) []string {
	return compare(a, b, func(x, y itemState) bool { return x.is == y.is })
}

// differInTime also compares the times of files.
func differInTime(a, b snapshot) []string {
	return compare(a, b, func(x, y itemState) bool { return x == y })
}

func compare(a, b snapshot, same func(x, y itemState) bool) (names []string) {
	for name, is := range a {
		if now, there := b[name]; !there || !same(is, now) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, there := a[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// overlay replaces some names with the items of another world.
func overlay(on, from snapshot, names []string) snapshot {
	out := maps.Clone(on)
	for _, name := range names {
		delete(out, name)
		s, there := from[name]
		if !there {
			continue
		}
		out[name] = s
		kind, path, _ := strings.Cut(name, " ")
		for kind == "file" && path != "." { // its parent folders must exist
			path = filepath.Dir(path)
			if _, there := out["file "+path]; !there {
				out["file "+path] = from["file "+path]
			}
		}
	}
	return out
}
