package rego

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/policies"
)

// libRef is the package of the rule library that remit includes.
var libRef = ast.MustParseRef("data.remit.lib")

// addLib adds the library to a policy that refers to it. A policy that has a
// package of that name keeps its own. If only its tests refer to the library,
// addLib adds it to the tests, where it decides nothing.
func (m *modules) addLib() ([]file, error) {
	if defines(m.parsed, libRef) || defines(m.tests, libRef) {
		return nil, nil
	}
	decides, tested := refers(m.parsed, libRef), refers(m.tests, libRef)
	if !decides && !tested {
		return nil, nil
	}
	files, err := libFiles()
	if err != nil {
		return nil, err
	}
	lib, err := parse(files)
	if err != nil {
		return nil, err
	}
	for name, mod := range lib.parsed {
		m.packs[name] = true
		if decides {
			m.parsed[name] = mod
		} else {
			m.tests[name] = mod
		}
	}
	if !decides {
		return nil, nil
	}
	m.names = sortedKeys(m.parsed)
	return files, nil
}

// hasLib reports whether the policy uses the included library, and not a package
// of its own with that name.
func (m *modules) hasLib() bool {
	for name, mod := range m.parsed {
		if m.packs[name] && mod.Package.Path.Equal(libRef) {
			return true
		}
	}
	return false
}

// libFiles returns the files of the library, without its tests.
func libFiles() ([]file, error) {
	var found problems
	all := map[string]file{}
	Source{FS: policies.Lib(), Prefix: policies.Prefix, NoTests: true}.read(all, nil, &found)
	files := make([]file, 0, len(all))
	for _, name := range sortedKeys(all) {
		files = append(files, all[name])
	}
	return files, found.err()
}

func defines(all map[string]*ast.Module, path ast.Ref) bool {
	for _, mod := range all {
		if mod.Package.Path.Equal(path) {
			return true
		}
	}
	return false
}

// refers reports whether a module refers to a place below path.
func refers(all map[string]*ast.Module, path ast.Ref) (found bool) {
	for _, mod := range all {
		ast.WalkRefs(mod, func(ref ast.Ref) bool {
			found = found || ref.HasPrefix(path)
			return found
		})
	}
	return found
}
