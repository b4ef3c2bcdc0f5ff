package policyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// Load loads a policy from files, folders and packs. No paths means the
// workspace policy. Modules keep the names of the paths, so that a reason names
// its line. Tests adds the test file of each named file.
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
	return e, all.improveFixes(err)
}

// policyFiles collects the files of a command line, each once. A folder is the
// root of its files, so that the revision does not depend on the path.
type policyFiles struct {
	sources []rego.Source
	names   map[string]bool
	ignored []string // files that look like data and are not read
}

// improveFixes improves the fixes of errors about undefined data: it names the
// pack that defines a helper, or the ignored files.
func (p *policyFiles) improveFixes(err error) error {
	var bad *rego.LoadError
	if !errors.As(err, &bad) {
		return err
	}
	for i := range bad.Problems {
		_, missing, undefined := strings.Cut(bad.Problems[i].Text, "no data file defines ")
		helper, ofRemit := strings.CutPrefix(missing, "data.remit.")
		pack, _, _ := strings.Cut(helper, ".")
		switch {
		case undefined && ofRemit && slices.Contains(policies.Names(), pack):
			bad.Problems[i].Fix = fmt.Sprintf("the pack %s defines it: add %s%s to the policy", pack, policies.Prefix, pack)
		case undefined && len(p.ignored) > 0:
			bad.Problems[i].Fix += "; not read: " + strings.Join(p.ignored, ", ")
		}
	}
	return err
}

// addPack adds a built-in pack. The tests of a pack hold for the pack alone, so
// noTests leaves them out.
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
	if f, err := os.Open(path); err != nil { // fs.Glob reports only that there is no file
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

// addFolder adds the files below a folder. It rejects a folder without rules: a
// misspelt path would load half of a policy.
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

// isPolicyFile reports whether a folder of policies reads a file of this name.
func isPolicyFile(name string) bool {
	return path.Ext(name) == ".rego" || path.Base(name) == "data.json"
}

// put adds the files of a folder that no other source has.
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

// literalGlob escapes a name, so that the glob matches only this name.
var literalGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
