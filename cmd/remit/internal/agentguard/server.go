package agentguard

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/hookclient"
	"github.com/remit-dev/remit/internal/lineage"
)

// serversFolder returns the folder of the records of servers below a folder for
// state.
func serversFolder(home string) string {
	return filepath.Join(home, filepath.FromSlash(hookclient.Folder), "servers")
}

// AnnounceServer stores which client started this server of tools, until release
// is called or the process ends: a client without hooks has no other record. On
// a system that does not tell the parents of processes, it does nothing.
func AnnounceServer(a *cli.App) (release func(), err error) {
	nothing := func() {}
	here, err := lineage.Own()
	if errors.Is(err, lineage.ErrUnknown) {
		return nothing, nil
	}
	if err != nil {
		return nothing, err
	}
	home, err := state.Home(a.Getenv)
	if err != nil { // then no command finds the folder of another one
		return nothing, nil //nolint:nilerr // the server runs without it
	}
	text, err := json.Marshal(here.AskingProcess())
	if err != nil {
		return nothing, err
	}
	dir := serversFolder(home)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nothing, err
	}
	f, err := os.CreateTemp(dir, "*.new")
	if err != nil {
		return nothing, err
	}
	name := f.Name()
	if _, err = f.Write(text); err == nil {
		err = lockFile(f)
	}
	if err == nil {
		err = os.Rename(name, name[:len(name)-len(".new")])
		name = name[:len(name)-len(".new")]
	}
	release = func() { _, _ = os.Remove(name), f.Close() }
	if err != nil {
		release()
		return nothing, err
	}
	return release, nil
}

// Servers returns the recorded processes of the servers of tools that run, with
// those above each that act for the same client, and the process of this
// command. dir is its state folder.
func Servers(a *cli.App, dir string) (all []json.RawMessage, who cli.Caller, err error) {
	who = cli.UnknownCaller()
	if a.Caller != nil {
		who = a.Caller()
	}
	var seen []string
	for _, home := range append(homes(a, dir), inherited(who)...) {
		if slices.Contains(seen, home) {
			continue
		}
		seen = append(seen, home)
		some, err := servers(serversFolder(home))
		if err != nil {
			return nil, who, err
		}
		all = append(all, some...)
	}
	return all, who, nil
}

// servers reads the records of a folder. It removes those of servers that have
// ended.
func servers(dir string) (all []json.RawMessage, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if filepath.Ext(path) != "" { // one that is being written
			continue
		}
		text, runs, err := readLocked(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return nil, err
		case runs:
			all = append(all, text)
		default:
			_ = os.Remove(path)
		}
	}
	return all, nil
}

// readLocked reads a record, and reports whether its server runs: it holds the
// lock of the file.
func readLocked(path string) (text []byte, runs bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	runs = isLocked(f)
	if err = f.Close(); err != nil {
		return nil, runs, err
	}
	text, err = os.ReadFile(path)
	return text, runs, err
}
