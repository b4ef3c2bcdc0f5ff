package policyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// Load makes an engine of files and folders; none is the workspace
// policy. Modules have the names that they were given by, so that a reason
// leads to its line.
func Load(paths []string, tests bool) (*rego.Engine, error) {
	if len(paths) == 0 {
		return rego.Load(rego.Source{FS: policies.Workspace(), Prefix: policies.Prefix})
	}
	var all policyFiles
	for _, path := range paths {
		if pack, builtin := strings.CutPrefix(path, policies.Prefix); builtin {
			if err := all.addPack(pack, len(paths) > 1 || !tests); err != nil {
				return nil, err
			}
			continue
		}
		if err := all.add(path, tests); err != nil {
			return nil, &cli.Problem{
				Code: cli.ExitUsage, What: fmt.Sprintf("the policy %q cannot be read", path), Why: cli.PlainError(err),
				Fix: "name a .rego file, a folder of them, or a pack: " + PackList(),
			}
		}
	}
	e, err := rego.New(rego.Options{Sources: all.sources})
	return e, all.unread(err)
}

// policyFiles are the files that a command line names, each once, as sources: a
// folder is the root of what is below it, so that the revision is the same
// whatever path leads there.
type policyFiles struct {
	sources []rego.Source
	names   map[string]bool
	ignored []string // that look like data
}

// unread says of a policy that names data which nothing defines which files of its
// folders look like data and are none.
func (p *policyFiles) unread(err error) error {
	var bad *rego.LoadError
	if !errors.As(err, &bad) || len(p.ignored) == 0 {
		return err
	}
	for i := range bad.Problems {
		if strings.Contains(bad.Problems[i].Text, "no data file defines") {
			bad.Problems[i].Fix += "; not read: " + strings.Join(p.ignored, ", ")
		}
	}
	return err
}

// addPack adds a pack that comes with remit. Its tests hold for the pack alone:
// beside other rules they are left out.
func (p *policyFiles) addPack(name string, noTests bool) error {
	pack, err := Pack(name)
	if err == nil {
		p.sources = append(p.sources, rego.Source{FS: pack, Prefix: policies.Prefix, NoTests: noTests})
	}
	return err
}

func (p *policyFiles) add(path string, tests bool) error {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return p.addFolder(path)
	}
	dir, files := filepath.Dir(path), []string{filepath.Base(path)}
	if stem := strings.TrimSuffix(path, ".rego"); tests && stem != path && !strings.HasSuffix(path, "_test.rego") {
		if _, err := os.Stat(stem + "_test.rego"); err == nil {
			files = append(files, filepath.Base(stem)+"_test.rego")
		}
	}
	if f, err := os.Open(path); err != nil { // fs.Glob would say only that nothing is there
		return err
	} else if err := f.Close(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "data.json")); err == nil {
		p.ignored = append(p.ignored, filepath.ToSlash(filepath.Join(dir, "data.json"))+" (name the folder, or that file too)")
	}
	p.put(dir, files)
	return nil
}

// addFolder adds what lies below a folder. One without a policy is refused: a
// misspelt path would else be a policy that lacks half of its rules.
func (p *policyFiles) addFolder(dir string) error {
	var files []string
	rules := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if path.Ext(name) == ".rego" {
			rules++
		}
		if !isPolicyFile(name) {
			if ext := path.Ext(name); ext == ".json" || ext == ".yaml" || ext == ".yml" {
				p.ignored = append(p.ignored, filepath.ToSlash(filepath.Join(dir, name)))
			}
			return nil
		}
		files = append(files, name)
		return nil
	})
	if err == nil && rules == 0 {
		return errors.New("no .rego file is in that folder")
	}
	p.put(dir, files)
	return err
}

// isPolicyFile reports whether a folder of policies has a name as a rule or as data.
func isPolicyFile(name string) bool {
	return path.Ext(name) == ".rego" || path.Base(name) == "data.json"
}

// put makes a source of the files of a folder that no other source has.
func (p *policyFiles) put(dir string, files []string) {
	prefix := filepath.ToSlash(dir) + "/"
	if dir == "." {
		prefix = ""
	}
	if p.names == nil {
		p.names = map[string]bool{}
	}
	s := rego.Source{FS: os.DirFS(dir), Prefix: strings.Replace(prefix, "//", "/", 1)}
	for _, name := range files {
		if whole := prefix + name; !p.names[whole] {
			p.names[whole] = true
			s.Globs = append(s.Globs, literalGlob.Replace(name))
		}
	}
	if len(s.Globs) > 0 {
		p.sources = append(p.sources, s)
	}
}

// literalGlob makes a glob that matches a name and no other.
var literalGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
