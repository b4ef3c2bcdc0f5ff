package cli

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// OpenTerminal opens the terminal of the process. It works if standard input
// and output are redirected.
func OpenTerminal() (io.ReadWriteCloser, error) {
	if runtime.GOOS == "windows" {
		return os.OpenFile("CONIN$", os.O_RDWR, 0)
	}
	return os.OpenFile("/dev/tty", os.O_RDWR, 0)
}
