package connect

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// record describes what connecting did to one file, so that Disconnect can
// restore it.
type record struct {
	Version    int           `json:"v"`
	Client     string        `json:"client"`
	Path       string        `json:"path"` // path as the client knows it
	TOML       bool          `json:"toml,omitempty"`
	Key        string        `json:"key"` // of the tables
	PerProject bool          `json:"per_project,omitempty"`
	Before     string        `json:"before"` // digests of the file
	After      string        `json:"after"`
	Tables     []routedTable `json:"tables"`
}

// routedTable is one table that leads to the gateway.
type routedTable struct {
	Path    []string        `json:"path"`
	Scope   Scope           `json:"scope"`
	Project string          `json:"project,omitempty"`
	Name    string          `json:"name"` // of the gateway in the table
	Entry   entry           `json:"entry"`
	Gateway string          `json:"gateway"`
	Servers []removedServer `json:"servers"`
}

// removedServer is a server that connecting removed.
type removedServer struct {
	Name    string `json:"name"`
	As      string `json:"as,omitempty"` // name behind the gateway, if it differs
	Raw     string `json:"raw,omitempty"`
	Entry   entry  `json:"entry"`
	Gateway entry  `json:"gateway"` // as connecting added it to the gateway's configuration; null: it was there
}

func (r *record) format() format {
	if r.TOML {
		return tomlFormat{}
	}
	return jsonFormat{}
}

func (r *record) layout() layout { return layout{r.Key, r.PerProject} }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// recordFile returns the path of a file's record. The backup is beside it.
func (p Environment) recordFile(path string) string {
	return filepath.Join(p.State, digest([]byte(path))[:16]+".json")
}

func backupFile(recordFile string) string { return strings.TrimSuffix(recordFile, ".json") + ".backup" }

// recordOf returns the record of a file, or nil.
func (p Environment) recordOf(path string) (*record, error) {
	return readRecord(p.recordFile(path))
}

func readRecord(name string) (*record, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && (r.Version != 1 || r.Path == "" || r.Key == "") {
		err = errors.New("it is not a record of this version")
	}
	if err != nil {
		return nil, &FileError{Path: name, Text: "the record of what was connected cannot be read: " + plain(err) + "; the backup is beside it"}
	}
	return &r, nil
}

// records lists the records of all clients.
func (p Environment) records() (all []*record, err error) {
	names, err := filepath.Glob(filepath.Join(p.State, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		r, err := readRecord(name)
		if err != nil {
			return nil, err
		}
		if r != nil {
			all = append(all, r)
		}
	}
	return all, nil
}

// keep writes a record after its backup.
func (p Environment) keep(r *record, before []byte) error {
	if err := folder(p.State); err != nil {
		return err
	}
	name := p.recordFile(r.Path)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := overwrite(backupFile(name), before); err != nil {
		return err
	}
	return overwrite(name, append(text, '\n'))
}

// overwrite writes a file of remit's own, unconditionally.
func overwrite(name string, text []byte) error {
	was, err := loadFile(name)
	if err != nil {
		return err
	}
	if was == nil {
		return write(name, nil, text, nil)
	}
	return write(was.real, was.text, text, nil)
}

// forget removes a record. It removes the backup too if the file is restored
// byte for byte.
func (p Environment) forget(r *record, exact bool) error {
	name := p.recordFile(r.Path)
	err := os.Remove(name)
	if exact {
		err = errors.Join(err, os.Remove(backupFile(name)))
	}
	return err
}

// backup reads the backup of a record, and checks its digest.
func (p Environment) backup(r *record) ([]byte, error) {
	name := backupFile(p.recordFile(r.Path))
	text, err := os.ReadFile(name)
	if err == nil && digest(text) != r.Before {
		err = errors.New("it is not the backup that was made")
	}
	if err != nil {
		return nil, &FileError{Path: name, Text: plain(err)}
	}
	return text, nil
}

// before computes the text of a file before it was connected, from its current
// text. Exact means byte for byte; otherwise notes say what differs.
func (p Environment) before(r *record, text []byte) (was []byte, exact bool, notes []string, err error) {
	switch digest(text) {
	case r.Before:
		return text, true, nil, nil
	case r.After:
		if was, err = p.backup(r); err == nil {
			return was, true, nil, nil
		}
		notes = append(notes, "the backup cannot be used: "+err.Error())
	}
	was, more, err := takeBack(r, text)
	switch {
	case err != nil:
	case bytes.Equal(was, text):
		notes = append(notes, "it does not lead to the gateway any more: it stays as it is")
	default:
		notes = append(notes, "it changed since it was connected: what remit connect added is removed, the rest stays")
	}
	return was, false, append(notes, more...), err
}

// takeBack removes the gateway from each table and inserts its servers, unless
// other ones have their names.
func takeBack(r *record, text []byte) (was []byte, notes []string, err error) {
	_, body, err := opened(text)
	if err != nil {
		return nil, nil, err
	}
	f := r.format()
	if !r.TOML && blank(body) {
		return text, []string{"it is empty now, and stays so"}, nil
	}
	tables, err := f.tables(body, r.layout())
	if err != nil {
		return nil, nil, err
	}
	var changes []change
	for _, t := range r.Tables {
		now := &table{}
		for _, is := range tables {
			if strings.Join(is.path, "\x00") == strings.Join(t.Path, "\x00") {
				now = is
			}
		}
		c, more := t.back(now)
		notes = append(notes, more...)
		if len(t.Path) > 1 && now.path == nil && !projectThere(f, body, t.Path) {
			notes = append(notes, fmt.Sprintf("project %s is not in it any more: its servers stay out", t.Project))
			continue
		}
		if len(c.in)+len(c.out) > 0 {
			changes = append(changes, c)
		}
	}
	was, err = edited(f, text, changes)
	return was, notes, err
}

func projectThere(f format, body []byte, path []string) bool {
	v, err := f.values(body)
	_, there := at(v, path[:len(path)-1]).(map[string]any)
	return err == nil && there
}

// back returns the change that restores a table.
func (t routedTable) back(now *table) (c change, notes []string) {
	c.path = t.Path
	switch is := now.find(t.Name); {
	case is == nil:
	case is.entry.same(t.Entry):
		c.out = []string{t.Name}
	default:
		notes = append(notes, fmt.Sprintf("server %q was changed since: it stays as it is", t.Name))
	}
	for _, s := range t.Servers {
		if is := now.find(s.Name); is != nil {
			if !is.entry.same(s.Entry) {
				notes = append(notes, fmt.Sprintf("server %q is there again, and another one than before: it stays as it is", s.Name))
			}
			continue
		}
		c.in = append(c.in, serverText{s.Name, s.Raw, s.Entry})
	}
	return c, notes
}
