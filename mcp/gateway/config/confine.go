package config

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Confine drafts a sandbox for a server with a Command that has neither a
// sandbox nor a reviewed entry. The sandbox contains all roots, by name to
// folder, and the code that the command line names. Only a start shows whether
// the server runs there. If there is no draft, why says what prevents it; why
// is empty for a server by URL and for one with a sandbox.
func (s Server) Confine(roots map[string]string) (d EntryDraft, ok bool, why string) {
	if s.Command == "" || s.Sandbox != nil {
		return EntryDraft{}, false, ""
	}
	for name, e := range s.Tools {
		if !e.Draft {
			return EntryDraft{}, false, "the entry of its tool " + name + " is no draft any more, and was written for a server outside the sandbox"
		}
	}
	if program := strings.TrimSuffix(filepath.Base(s.Command), ".cmd"); slices.Contains(fetching, program) {
		return EntryDraft{}, false, program + " fetches it over the network, which there is none of: install the server, and let its entry start what was installed"
	}
	raw, err := json.Marshal(struct {
		Roots    []string `json:"roots"`
		Readable []string `json:"readable,omitempty"`
	}{slices.Sorted(maps.Keys(roots)), s.code(roots)})
	return EntryDraft{Server: s.Name, Entry: raw}, err == nil, ""
}

// fetching lists the programs that download what they start, or pass it to a
// service outside the sandbox.
var fetching = []string{"npx", "pnpx", "bunx", "uvx", "pipx", "docker", "podman"}

// code returns the folders and files that the command line names and that hold
// code: an installed package, or the file alone. It skips those in the roots
// and in system folders.
func (s Server) code(roots map[string]string) (all []string) {
	command, err := exec.LookPath(s.Command)
	if err != nil {
		command = s.Command
	}
	for _, named := range append([]string{command}, s.Args...) {
		path := named
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Dir, path)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(real) {
			continue // not a file, or relative to the working folder of remit
		}
		for _, p := range []string{path, real} {
			if p = packageOf(p); p != "" && !within(p, slices.Collect(maps.Values(roots))) && !within(p, systemFolders) {
				all = append(all, p)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// systemFolders exist in each sandbox.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store", "/gnu/store"}

func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// packageOf returns the folder of the package that a file belongs to: the
// topmost node_modules, the Python environment, the Node.js installation, or
// else the file alone. For a folder it returns "": a folder is data of the
// server, not its code.
func packageOf(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if at := strings.Index(path, "/node_modules/"); at >= 0 {
		return path[:at+len("/node_modules")]
	}
	prefix := filepath.Dir(filepath.Dir(path))
	for _, sign := range []string{"pyvenv.cfg", "include/node/node.h"} {
		if _, err := os.Stat(filepath.Join(prefix, sign)); err == nil && prefix != "/" {
			return prefix
		}
	}
	return path
}
