package rego

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// isData reports whether a file holds data and not rules.
func isData(name string) bool { return path.Ext(name) == ".json" }

// readData adds a JSON file, which must hold an object, to the data below the
// names of its folders. It merges the members of several files. No file may
// replace a member of another.
func (s Source) readData(into map[string]any, at, name string, found *problems) {
	text, err := fs.ReadFile(s.FS, at)
	if err != nil {
		found.add(name, "", "the file cannot be read: %v", err)
		return
	}
	v, err := canon.Parse(text, canon.DefaultLimits())
	if err != nil {
		found.add(name, "write one JSON object", "the data is not JSON: %v", err)
		return
	}
	doc, ok := v.Any().(map[string]any)
	if !ok {
		found.add(name, "write one JSON object", "the data is not an object")
		return
	}
	if dir := path.Dir(at); dir != "." {
		folders := strings.Split(dir, "/")
		for i := len(folders) - 1; i >= 0; i-- {
			doc = map[string]any{folders[i]: doc}
		}
	}
	if clash := join(into, doc, ""); clash != "" {
		found.add(name, "rename one of them", "data%s is also said elsewhere", clash)
	}
}

// join adds the members of a document to another. It returns the first name
// that both have.
func join(into, more map[string]any, where string) (clash string) {
	for _, key := range sortedKeys(more) {
		old, twice := into[key]
		if !twice {
			into[key] = more[key]
			continue
		}
		below, isObject := old.(map[string]any)
		also, areObjects := more[key].(map[string]any)
		if !isObject || !areObjects {
			return where + "." + key
		}
		below = maps.Clone(below)
		into[key] = below
		if clash = join(below, also, where+"."+key); clash != "" {
			return clash
		}
	}
	return ""
}

// data returns the data of rules: that of the options and that of the files.
func (o Options) data(files map[string]any) (map[string]any, error) {
	if len(files) == 0 {
		return o.Data, nil
	}
	all := maps.Clone(files)
	if clash := join(all, o.Data, ""); clash != "" {
		return nil, problems{{Text: fmt.Sprintf("data%s is said by a file and by Options.Data", clash), Fix: "rename one of them"}}.err()
	}
	return all, nil
}
