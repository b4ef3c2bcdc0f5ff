package rego

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// DefaultSteps is the default of Options.Steps. It is a thousand times what a
// usual policy needs, and about a second of processor time.
const DefaultSteps = 1_000_000

// DefaultTimeout is the default of Options.Timeout. Steps bound a policy on any
// machine. The timeout bounds the work of one built-in, and a machine that is
// stalled.
const DefaultTimeout = 30 * time.Second

// Options configures an Engine. Files whose names end in _test.rego hold tests:
// Engine.Test runs them, and they never decide.
type Options struct {
	Modules   map[string]string // file name -> text
	Sources   []Source          // more files
	Data      map[string]any    // data for rules, beside the *.json files of Sources; must not have the key remit
	Steps     int               // evaluation steps per decision; 0: DefaultSteps
	Timeout   time.Duration     // time per decision; 0: DefaultTimeout
	CacheSize int               // number of cached decisions; 0: DefaultCacheSize; negative: none
}

// Source is a tree of policy files. A JSON file is data: its object is in data
// below the names of its folders.
type Source struct {
	FS     fs.FS
	Globs  []string // patterns of fs.Glob for *.rego and *.json files; empty: every *.rego and data.json of the tree
	Prefix string   // prefix of file names in positions, such as "policies/" or "builtin:"

	// NoTests marks a pack beside the author's own rules. Its *_test.rego files
	// are not loaded, because they hold only for the pack alone. Coverage,
	// Engine.UncheckedRefs and Engine.SlowRules omit its other files.
	NoTests bool
}

// file is one module as text. Its path is relative to the root of its source.
// Its name adds the prefix of the source.
type file struct {
	name, path, text string
	pack             bool // from a Source with NoTests
}

func (f file) isTest() bool { return strings.HasSuffix(f.name, "_test.rego") }

// files reads all files of the options, sorted by name.
func (o Options) files() ([]file, map[string]any, error) {
	var found problems
	data := map[string]any{}
	all := map[string]file{}
	for name, text := range o.Modules {
		all[name] = file{name: name, path: name, text: text}
	}
	for _, s := range o.Sources {
		s.read(all, data, &found)
	}
	list := make([]file, 0, len(all))
	for name, f := range all {
		if name == "" {
			found.add("", "give each module a file name", "a module has no name")
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b file) int { return strings.Compare(a.name, b.name) })
	if err := found.err(); err != nil {
		return nil, nil, err
	}
	data, err := o.data(data)
	return list, data, err
}

// read adds the files of s to all and data. A glob without a match is a
// problem: a misspelt one would load a policy that lacks half of its rules.
func (s Source) read(all map[string]file, data map[string]any, found *problems) {
	if s.FS == nil {
		found.add("", "set Source.FS", "a source has no file system")
		return
	}
	paths, err := s.names(found)
	if err != nil {
		found.add("", "", "the policy files cannot be listed: %v", err)
		return
	}
	for _, path := range paths {
		name := s.Prefix + path
		if s.NoTests && (file{name: name}).isTest() {
			continue
		}
		if isData(path) {
			s.readData(data, path, name, found)
			continue
		}
		text, err := fs.ReadFile(s.FS, path)
		if err != nil {
			found.add(name, "", "the file cannot be read: %v", err)
			continue
		}
		if same, twice := all[name]; twice {
			if same.text != string(text) { // packs share files
				found.add(name, "rename one of them, or give a source a Prefix", "two sources have a file of this name")
			}
			continue
		}
		all[name] = file{name: name, path: path, text: string(text), pack: s.NoTests}
	}
}

func (s Source) names(found *problems) ([]string, error) {
	if len(s.Globs) == 0 {
		return allFiles(s.FS)
	}
	set := map[string]bool{}
	for _, glob := range s.Globs {
		matches, err := fs.Glob(s.FS, glob)
		if err != nil || len(matches) == 0 {
			found.add("", "check the path", "no policy file matches %q", glob)
		}
		for _, name := range matches {
			set[name] = true
		}
	}
	return sortedKeys(set), nil
}

func allFiles(fsys fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (path.Ext(name) == ".rego" || path.Base(name) == "data.json") {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
