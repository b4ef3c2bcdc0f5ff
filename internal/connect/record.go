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
	"slices"
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
	Prior      string        `json:"prior,omitempty"` // digest that connecting again replaces, until it wrote the file
	Tables     []routedTable `json:"tables,omitempty"`
	Hooks      []listElement `json:"hooks,omitempty"`
	Missing    bool          `json:"missing,omitempty"` // the file was missing: disconnecting removes it
	Whole      bool          `json:"whole,omitempty"`   // remit wrote the whole file
	Folders    []string      `json:"folders,omitempty"` // that were missing, the deepest first
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
	if err == nil && (r.Version != 1 || r.Path == "" || r.Key == "" && len(r.Hooks) == 0 && !r.Whole) {
		err = errors.New("it is not a record of this version")
	}
	if err != nil {
		return nil, &FileError{Path: name, Text: "the record of what was connected cannot be read: " + plain(err) + "; the backup is beside it"}
	}
	return &r, nil
}

// records lists the records of all clients, by path.
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
	slices.SortFunc(all, func(a, b *record) int { return strings.Compare(a.Path, b.Path) })
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
	if before != nil {
		if err := overwrite(backupFile(name), before); err != nil {
			return err
		}
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

// forget removes a record, and the folders that connecting created, if they are
// empty. It removes the backup too if the file is restored byte for byte.
func (p Environment) forget(r *record, exact bool) error {
	for _, dir := range r.Folders {
		_ = os.Remove(dir) // fails if something else is in it
	}
	name := p.recordFile(r.Path)
	err := os.Remove(name)
	if exact {
		if gone := os.Remove(backupFile(name)); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
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

// before computes the text of a file before it was connected, from the current
// one; nil means that it was missing. Exact means byte for byte; otherwise notes
// say what differs.
func (p Environment) before(r *record, held *loadedFile) (was []byte, exact bool, notes []string, err error) {
	text := held.text
	switch is := digest(text); {
	case is == r.Before && !r.Missing:
		return text, true, nil, nil
	case is != r.After && is != r.Prior:
	case r.Missing && held.isLink():
		notes = append(notes, "it is a link now: it stays")
	case r.Missing:
		return nil, true, nil, nil
	default:
		if was, err = p.backup(r); err == nil {
			return was, true, nil, nil
		}
		notes = append(notes, "the backup cannot be used: "+err.Error())
	}
	if r.Whole {
		return text, false, append(notes, "it was changed since: it stays as it is, remove it yourself"), nil
	}
	was, more, err := takeBack(r, text)
	switch {
	case err != nil:
	case bytes.Equal(was, text):
		notes = append(notes, "it does not lead to the gateway any more: it stays as it is")
	case r.Missing && !held.isLink() && saysNothing(was):
		return nil, true, more, nil
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
	if len(r.Hooks) > 0 {
		if text, notes, err = r.takeHooks(text); err != nil || r.Key == "" {
			return text, notes, err
		}
		if _, body, err = opened(text); err != nil {
			return nil, nil, err
		}
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

// saysNothing reports whether a file that connecting created has nothing of
// its own.
func saysNothing(text []byte) bool {
	_, body, err := opened(text)
	if err != nil {
		return false
	}
	v, err := jsonFormat{}.values(body)
	if err != nil || tooDeep(body) >= 0 || bytes.Contains(body, []byte("/")) { // a comment
		return false
	}
	if fmt.Sprint(v["version"]) == "1" { // which hooks of Cursor need
		delete(v, "version")
	}
	return len(v) == 0
}

// takeHooks removes the hooks that are as connecting added them.
func (r *record) takeHooks(text []byte) (was []byte, notes []string, err error) {
	mark, body, err := opened(text)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range slices.Backward(r.Hooks) {
		after, err := h.removed(body)
		if err != nil {
			return nil, nil, err
		}
		if bytes.Equal(after, body) {
			notes = append(notes, fmt.Sprintf("the hook of %s was changed or removed since: what is there stays as it is", h.Path[len(h.Path)-1]))
		}
		body = after
	}
	return append(slices.Clone(mark), body...), notes, nil
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
		c.in = append(c.in, serverText{name: s.Name, raw: s.Raw, entry: s.Entry})
	}
	return c, notes
}
