package connect

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
)

// RewriteFile replaces a configuration by the result of edit, in one step,
// after it wrote the old text to the backup, a file beside it. Concurrent calls
// wait. If another program writes the file meanwhile, RewriteFile calls edit
// again. It writes nothing if edit changes nothing.
func RewriteFile(path string, edit func(text []byte) ([]byte, error)) (backup string, err error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path // the read below reports the error
	}
	// Two processes that restore the file at the same time, after each found
	// that it changed, could lose the write of a third.
	unlock, err := lockFolder(filepath.Dir(real))
	if err != nil {
		return "", err
	}
	defer unlock()
	for range attempts {
		if backup, err = rewrite(path, edit); !errors.Is(err, errMoved) {
			return backup, err
		}
	}
	return "", fmt.Errorf("another process keeps writing it: %w", err)
}

func rewrite(path string, edit func(text []byte) ([]byte, error)) (backup string, err error) {
	h, err := loadFile(path)
	if err == nil && h == nil {
		err = &FileError{Path: path, Text: "it is not there"}
	}
	if err != nil {
		return "", err
	}
	text, err := edit(bytes.Clone(h.text))
	if err != nil || bytes.Equal(text, h.text) {
		return "", err
	}
	if err := h.writable(); err != nil {
		return "", err
	}
	backup = h.real + ".backup"
	if err := overwrite(backup, h.text); err != nil {
		return "", err
	}
	return backup, h.swap(text)
}
