package agentguard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/internal/hookclient"
	"github.com/remit-dev/remit/internal/lineage"
)

// Record describes a session of a client that runs.
type Record struct {
	Client  string                `json:"client"`
	Session string                `json:"session"` // the client's ID
	Journal string                `json:"journal"` // ID on the journal
	Process lineage.AskingProcess `json:"process"` // the client alone
}

// ClientProcess returns the record of the process of a client, without those
// above it: a person works in some of them too, such as the terminal of an
// editor.
func ClientProcess(c lineage.Chain) (a lineage.AskingProcess) {
	if len(c.Links) == 0 {
		return a
	}
	first := c.Links[0]
	return lineage.AskingProcess{Boot: c.Boot, Namespaces: c.Namespaces, Group: first.Group, Processes: []lineage.Process{first.Process}}
}

// folder returns the folder of the records below a folder for state.
func folder(home string) string {
	return filepath.Join(home, filepath.FromSlash(hookclient.Folder), "clients")
}

// FileName returns the name of the files about a session of a client. The
// client chooses the ID, so that it cannot be a name itself.
func FileName(client, session string) string {
	sum := sha256.Sum256([]byte(client + "\x00" + session))
	return hex.EncodeToString(sum[:12])
}

// Write stores a record below a folder for state, in place of an earlier one.
func Write(home string, r Record) error {
	dir := folder(home)
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, FileName(r.Client, r.Session))
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Remove removes the record of a session whose client has ended.
func Remove(home, client, session string) error {
	err := os.Remove(filepath.Join(folder(home), FileName(client, session)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// RemoveEnded removes the records of clients that have ended.
func RemoveEnded(home string) error {
	here, err := lineage.Own()
	if err != nil {
		return err
	}
	all, err := records(home)
	for _, r := range all {
		if !r.counts(here) {
			err = errors.Join(err, Remove(home, r.Client, r.Session))
		}
	}
	return err
}

// RemoveAll removes all records, for a system that does not tell which clients
// have ended.
func RemoveAll(home string) error {
	all, err := records(home)
	for _, r := range all {
		err = errors.Join(err, Remove(home, r.Client, r.Session))
	}
	return err
}

// RunningClient returns the process of the client of a session by its record;
// 0: none is known to run.
func RunningClient(home, client, session string) int {
	here, err := lineage.Own()
	if err != nil {
		return 0
	}
	r, err := read(filepath.Join(folder(home), FileName(client, session)))
	if err != nil || r.Process.Namespaces != here.Namespaces || !r.counts(here) {
		return 0
	}
	return r.Process.Processes[0].PID
}

// read reads one record.
func read(path string) (r Record, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, errors.New(filepath.Base(path) + " is damaged")
	}
	return r, nil
}

// records reads the records below a folder for state.
func records(home string) (all []Record, err error) {
	entries, err := os.ReadDir(folder(home))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != "" { // one that is being written
			continue
		}
		r, err := read(filepath.Join(folder(home), e.Name()))
		if errors.Is(err, os.ErrNotExist) { // its client has just ended
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// counts reports whether the client of a record can still run. In other
// namespaces, process IDs have another meaning, so it can.
func (r Record) counts(here lineage.Chain) bool {
	p := r.Process
	switch {
	case p.Boot != here.Boot || len(p.Processes) == 0:
		return false
	case p.Namespaces != here.Namespaces:
		return true
	}
	return p.Processes[0].Lives()
}
