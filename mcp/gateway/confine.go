package gateway

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Confine is the draft of a sandbox for a server by command about which no person has written anything yet: it works in all roots, by
// name to folder, and reads the code that it is started from. Whether it starts there, only a start tells. Without a draft, why says
// what is in the way; it is empty for a server by URL, and one that has a sandbox.
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

// fetching are the programs that fetch what they start, or hand it to a service that runs elsewhere.
var fetching = []string{"npx", "pnpx", "bunx", "uvx", "pipx", "docker", "podman"}

// code are the folders and files, outside the roots and those of the system, that the command line of a server names and that hold
// code: an installed package, or else the file alone.
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
			continue // it is no file, or one that is found from where remit is started
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

// systemFolders are there in each sandbox.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store", "/gnu/store"}

func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// packageOf is the folder of the package that a file belongs to: the topmost node_modules, the environment of Python, the installed
// Node.js; else the file alone. Of a folder it is nothing: it is what a server works with, and not what it is made of.
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
