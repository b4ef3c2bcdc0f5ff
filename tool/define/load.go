package define

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/jsonfile"
	"github.com/remit-dev/remit/tool"
)

// Option changes what Load accepts.
type Option func(*config)

type config struct{ spare bool }

// AllowUnused lets implementations be that no file names.
func AllowUnused() Option { return func(c *config) { c.spare = true } }

// Load makes a tool of each .json file of a folder and the folders in it, in the order of
// their paths. Files whose names begin with a point or an underscore are left alone. With an
// error there is no tool: it tells all that is wrong with all files, by file, line and
// column.
func Load(fsys fs.FS, implementations map[string]Implementation, opts ...Option) ([]tool.Tool, error) {
	var c config
	for _, o := range opts {
		o(&c)
	}
	report := &jsonfile.Report{}
	var files []*file
	for _, name := range definitions(report, fsys) {
		text, err := slurp(fsys, name)
		if err != nil {
			report.Add(jsonfile.Finding{File: name, Text: err.Error()})
			continue
		}
		files = append(files, read(report, name, text, implementations))
	}
	twice(files)
	if !c.spare {
		unused(report, fsys, files, implementations)
	}
	return freeze(report, files)
}

// freeze makes the tools. What only the whole of a definition tells is told beside what is
// wrong with the others.
func freeze(report *jsonfile.Report, files []*file) ([]tool.Tool, error) {
	var tools []tool.Tool
	for _, f := range files {
		if f.root == nil || report.About(f.path) {
			continue
		}
		t, err := f.tool()
		if err != nil {
			f.root.Refuse("%v", err)
			continue
		}
		tools = append(tools, t)
	}
	if err := report.Err(); err != nil {
		return nil, err
	}
	if _, err := tool.NewRegistry(tools...); err != nil {
		return nil, fmt.Errorf("the definitions together: %w", err)
	}
	return tools, nil
}

// definitions lists the files, and tells of folders that cannot be read.
func definitions(report *jsonfile.Report, fsys fs.FS) (names []string) {
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			report.Add(jsonfile.Finding{File: name, Text: plain(err)})
		case hidden(name) && d.IsDir():
			return fs.SkipDir
		case !d.IsDir() && !hidden(name) && strings.HasSuffix(name, ".json"):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		report.Add(jsonfile.Finding{File: ".", Text: plain(err)})
	}
	return names
}

func hidden(name string) bool {
	base := path.Base(name)
	return name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"))
}

// slurp reads a file that is one: a pipe would never end.
func slurp(fsys fs.FS, name string) (text []byte, err error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, errors.New(plain(err))
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no ordinary file")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, errors.New(plain(err))
	}
	defer func() { _ = f.Close() }()
	if text, err = io.ReadAll(io.LimitReader(f, jsonfile.MaxBytes+1)); err != nil {
		return nil, errors.New(plain(err))
	}
	return text, nil
}

// plain is an error without the path, which the finding names.
func plain(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// twice refuses what only one file can say. Files of one id are versions of one tool, and
// may share their implementation.
func twice(files []*file) {
	type claim struct{ what, of string }
	first := map[claim]*file{}
	named, known, coded := map[string]*file{}, map[string]*file{}, map[string]*file{}
	for _, f := range files {
		if f.root == nil || f.id == "" || f.spec.Name == "" {
			continue
		}
		id, name := f.root.Get("id"), f.root.Get("function").Get("name")
		if o, ok := first[claim{f.id, f.spec.Version}]; ok {
			id.Refuse("id %q of version %q is that of %s, too", f.id, f.spec.Version, o.path)
			continue
		}
		first[claim{f.id, f.spec.Version}] = f
		if o := keep(named, f.spec.Name, f); o.id != f.id {
			name.Refuse("name %q is that of %q in %s; versions of one tool have one id", f.spec.Name, o.id, o.path)
		}
		if o := keep(known, f.id, f); o.spec.Name != f.spec.Name {
			name.Refuse("id %q is named %q in %s; versions of one tool have one name", f.id, o.spec.Name, o.path)
		}
		if o := keep(coded, f.key, f); o.id != f.id && f.key != "" {
			f.root.Get("implementation").Refuse("implementation %q is that of %q in %s", f.key, o.id, o.path)
		}
	}
}

// keep returns the first file that came with a key.
func keep(first map[string]*file, key string, f *file) *file {
	if _, ok := first[key]; !ok {
		first[key] = f
	}
	return first[key]
}

// unused refuses implementations that no file names. Where a file could not be read, or names
// none that there is, that is what is wrong, and is told there.
func unused(report *jsonfile.Report, fsys fs.FS, files []*file, implementations map[string]Implementation) {
	astray := func(f *file) bool { _, there := implementations[f.key]; return !there }
	if slices.ContainsFunc(files, astray) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(implementations)) {
		if !slices.ContainsFunc(files, func(f *file) bool { return f.key == key }) {
			report.Add(jsonfile.Finding{File: fmt.Sprintf("implementation %q", key), Text: "no file names it" + passed(fsys)})
		}
	}
}

// passed names files that may have been meant as definitions, and are none by their names.
func passed(fsys fs.FS) string {
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (hidden(name) || !strings.HasSuffix(name, ".json")) && strings.Contains(strings.ToLower(name), "js") {
			names = append(names, name)
		}
		return nil
	})
	if err != nil || len(names) == 0 {
		return ""
	}
	return "; not read, because a definition's name ends in .json and begins with neither a point nor an underscore: " + strings.Join(names, ", ")
}
