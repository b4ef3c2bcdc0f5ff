//go:build !linux

package process

import (
	"io"
	"os"
	"syscall"
)

// terminal is a program's terminal, which only Linux has: no program runs
// elsewhere.
type terminal struct{ master, slave *os.File }

func openTerminal(*Attachment, io.Reader) (*terminal, error) { return nil, nil }

func (*terminal) has(int) bool { return false }

func (*terminal) close() {}

func (*pipes) resize() {}

func isResize(syscall.Signal) bool { return false }

func inBackground(*os.File) bool { return false }

func sharePipe(*os.File) (*os.File, error) { return nil, nil }

type inputSource struct{}

func newInputSource(*os.File, *os.File) (*inputSource, error) { return nil, nil }

func (*inputSource) copyTo(*os.File, bool) {}

func (*inputSource) stop() {}

func (*inputSource) onDisk() bool { return false }

func (*inputSource) rewind() {}

func (*inputSource) close() {}
