package main

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the application's own driver for its database
)

//go:embed all:tree
var tree embed.FS

const schema = `
CREATE TABLE packages (name TEXT PRIMARY KEY, version TEXT NOT NULL);
CREATE TABLE releases (id INTEGER PRIMARY KEY, package TEXT NOT NULL REFERENCES packages, version TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE drafts (version TEXT PRIMARY KEY, note TEXT);
CREATE TABLE history (id INTEGER PRIMARY KEY, what TEXT NOT NULL);
CREATE TRIGGER moved AFTER UPDATE ON packages BEGIN
	INSERT INTO history (what) VALUES (old.name || ' ' || old.version || ' -> ' || new.version);
END;
INSERT INTO packages VALUES ('greet', '1.4.2'), ('wave', '0.3.0');
INSERT INTO releases (package, version, state) VALUES ('greet', '1.4.1', 'old'), ('greet', '1.4.2', 'current'), ('wave', '0.3.0', 'current');
INSERT INTO drafts VALUES ('1.5.0', 'capitals'), ('2.0.0', NULL);
`

// releaseEnv is all that the agent can change: a working tree with its repository,
// the database of the packages, the download site, and outgoing mail.
type releaseEnv struct {
	dir  string
	site *downloadSite
}

func (w *releaseEnv) workspace() string { return filepath.Join(w.dir, "workspace") }
func (w *releaseEnv) database() string  { return filepath.Join(w.dir, "packages.db") }
func (w *releaseEnv) mail() string      { return filepath.Join(w.dir, "mail") }
func (w *releaseEnv) state() string     { return filepath.Join(w.dir, "state") }

// programs are the programs that build a release.
var programs = []string{"sh", "git", "make", "tar", "sed"}

// newReleaseEnv creates one in an empty folder.
func newReleaseEnv(ctx context.Context, dir string) (*releaseEnv, error) {
	w := &releaseEnv{dir: dir}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("the release is made with %s: %w", name, err)
		}
	}
	if err := errors.Join(w.makeTree(ctx), os.Mkdir(w.mail(), 0o700), w.sql(ctx, schema)); err != nil {
		return nil, err
	}
	var err error
	w.site, err = newSite(map[string]string{
		"/releases/r1":     `{"id":"r1","version":"1.4.2","file":"greet-1.4.2.tar"}`,
		"/releases/r2":     `{"id":"r2","version":"1.5.0-beta","file":"greet-1.5.0-beta.tar"}`,
		"/channels/stable": `{"release":"1.4.2"}`,
	})
	return w, err
}

// makeTree creates the working tree of release 1.4.2, with its repository.
func (w *releaseEnv) makeTree(ctx context.Context) error {
	err := fs.WalkDir(tree, "tree", func(path string, d fs.DirEntry, err error) error {
		to := filepath.Join(w.workspace(), strings.TrimPrefix(path, "tree"))
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(to, 0o755))
		}
		data, err := tree.ReadFile(path)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(path, "tree/bin/") {
			mode = 0o755
		}
		return errors.Join(err, os.WriteFile(to, data, mode))
	})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-ec", `
		make dist
		git init -q
		git config user.name releases && git config user.email releases@example.com
		git add -A && git commit -qm "Release 1.4.2" && git tag v1.4.2`)
	cmd.Dir = w.workspace()
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the working tree cannot be made: %w\n%s", err, out)
	}
	return nil
}

// sql runs statements as the application, or as another authorized user.
func (w *releaseEnv) sql(ctx context.Context, statements string) error {
	db, err := sql.Open("sqlite", w.database())
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statements)
	return errors.Join(err, db.Close())
}

// snapshot is a world by part and name: its content, as text.
type snapshot map[string]map[string]string

// parts are the parts of a world, in the order of output.
var parts = []string{"tree", "database", "service"}

func (w *releaseEnv) snapshot(ctx context.Context) (snapshot, error) {
	files, err := w.files()
	rows, rowsErr := w.rows(ctx)
	return snapshot{"tree": files, "database": rows, "service": w.site.state()}, errors.Join(err, rowsErr)
}

// files describes everything in the working tree, .git included: type, mode,
// bytes, target of a link, and time of a file.
func (w *releaseEnv) files() (map[string]string, error) {
	all := map[string]string{}
	return all, filepath.WalkDir(w.workspace(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		is := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			is += fmt.Sprintf(" %v\n%s", info.ModTime().UnixNano(), data)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			is += " -> " + to
		}
		name, err := filepath.Rel(w.workspace(), path)
		all[filepath.ToSlash(name)] = is
		return err
	})
}

// rows dumps the database: its schema, and each row of each table, except for
// the table remit_ops. That one belongs to remit, and shows after a crash which
// calls have committed.
func (w *releaseEnv) rows(ctx context.Context) (all map[string]string, err error) {
	db, err := sql.Open("sqlite", w.database())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, `
		SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema WHERE tbl_name <> 'remit_ops'
		UNION ALL SELECT 'packages/' || name, quote(version) FROM packages
		UNION ALL SELECT 'releases/' || id, quote(package) || quote(version) || quote(state) FROM releases
		UNION ALL SELECT 'drafts/' || version, quote(note) FROM drafts
		UNION ALL SELECT 'history/' || id, quote(what) FROM history`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	all = map[string]string{}
	for rows.Next() {
		var name, is string
		if err := rows.Scan(&name, &is); err != nil {
			return nil, err
		}
		all[name] = is
	}
	return all, rows.Err()
}

// differences returns the names of the items of one part that differ.
func differences(a, b map[string]string) (names []string) {
	for name, is := range a {
		if now, there := b[name]; !there || now != is {
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

// mails returns the number of sent messages.
func (w *releaseEnv) mails() int {
	entries, err := os.ReadDir(w.mail())
	if err != nil {
		return -1
	}
	return len(entries)
}
