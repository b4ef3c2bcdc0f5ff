package cli

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// OpenTerminal opens the terminal itself, which is where a person is also when
// input and output lead elsewhere.
func OpenTerminal() (io.ReadWriteCloser, error) {
	if runtime.GOOS == "windows" {
		return os.OpenFile("CONIN$", os.O_RDWR, 0)
	}
	return os.OpenFile("/dev/tty", os.O_RDWR, 0)
}
