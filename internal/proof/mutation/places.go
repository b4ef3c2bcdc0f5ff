package mutation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folders returns the folders with code on which revert depends, and that of the
// engine that decides, below the module's root.
func Folders() []string {
	return []string{
		"ctxperm", "ctxperm/database", "ctxperm/database/internal/engine", "ctxperm/database/postgres", "ctxperm/database/sqlite",
		"agent", "ctxperm/files", "ctxperm/process", "internal/callstate", "internal/origin", "internal/pipeline", "internal/toolstate", "perm/rego", "revert", "revert/journal", "revert/record", "revert/sqlite", "tool",
	}
}

// All reads the folders of a module. The error lists every TagError.
func All(root string) ([]*File, error) {
	var all []*File
	var errs []error
	for _, folder := range Folders() {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(folder)))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !source(e) {
				continue
			}
			path := folder + "/" + e.Name()
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
			if err != nil {
				return nil, err
			}
			f, complaints, err := Read(path, text)
			if err != nil {
				return nil, err
			}
			for _, c := range complaints {
				errs = append(errs, fmt.Errorf("%s:%d: %s", path, c.Line, c.Text))
			}
			if len(f.Sites) > 0 {
				all = append(all, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
	return all, errors.Join(errs...)
}

func source(e fs.DirEntry) bool {
	return strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go")
}
