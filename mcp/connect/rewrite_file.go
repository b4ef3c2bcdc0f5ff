package connect

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
)

// RewriteFile puts what edit makes of a configuration in its place, in one step, and first what was there into the backup, a file
// beside it. Others who rewrite wait; where somebody else writes meanwhile, edit is asked again. What edit leaves as it was is not written.
func RewriteFile(path string, edit func(text []byte) ([]byte, error)) (backup string, err error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path // which is told of below
	}
	// Two who find that the text is not what they looked at, and put it back at once, could lose what a third one wrote.
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
	return "", fmt.Errorf("somebody keeps writing it: %w", err)
}

func rewrite(path string, edit func(text []byte) ([]byte, error)) (backup string, err error) {
	h, err := look(path)
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
