package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// furnish creates the folder for the conversation.
func (d *app) furnish() error {
	for name, content := range map[string]string{"menu.txt": "tea 3\n", "draft.txt": "tea 2?\n", ".git/history": "tea is 3\n"} {
		path := filepath.Join(d.dir, "cafe", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// tree describes every file with its bits, its time and its bytes.
func (d *app) tree() (all string, err error) {
	err = filepath.WalkDir(filepath.Join(d.dir, "cafe"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || entry.IsDir() {
			all += fmt.Sprintln(path)
			return err
		}
		content, err := os.ReadFile(path)
		all += fmt.Sprintln(path, info.Mode(), info.ModTime().UnixNano(), string(content))
		return err
	})
	return all, err
}
