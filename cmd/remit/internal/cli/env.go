package cli

import (
	"io"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/database"
	"github.com/remit-dev/remit/tool/builtin/files"
	"github.com/remit-dev/remit/tool/builtin/process"
	"github.com/remit-dev/remit/tool/builtin/web"
)

// Env holds everything outside the process that the command uses.
type Env struct {
	In          io.Reader
	Out, Err    io.Writer
	OutTerminal bool // out is a terminal
	// terminalErr reports that err is a terminal: the two can differ.
	ErrTerminal bool

	Getenv   func(string) string
	Username func() (string, error)             // returns the user by the operating system
	OpenTTY  func() (io.ReadWriteCloser, error) // opens the terminal
	// browse opens a page in a browser; nil: there is no browser.
	OpenPage func(page string) error
	// caller describes the process that runs the command; nil: unknown, and
	// nothing is approved.
	Caller     func() Caller
	Host       host.Host
	ExtraTools []tool.Tool // beside the built-in ones; only for tests

	Customizers []agent.Option // of tools that are made for each session; only for tests
}

// BuiltinTools lists the built-in tools and those of tests.
func (w Env) BuiltinTools() []tool.Tool {
	return slices.Concat(files.Tools(), process.Tools(), database.Tools(), web.Tools(), w.ExtraTools)
}
