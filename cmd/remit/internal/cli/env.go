package cli

import (
	"io"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// Env holds everything outside the process that the command uses.
type Env struct {
	In          io.Reader
	Out, Err    io.Writer
	OutTerminal bool // Out is a terminal
	// ErrTerminal reports whether Err is a terminal. The two can differ.
	ErrTerminal bool

	Getenv   func(string) string
	Username func() (string, error)             // returns the user by the operating system
	OpenTTY  func() (io.ReadWriteCloser, error) // opens the terminal
	// OpenPage opens a page in a browser. It is nil if there is no browser.
	OpenPage func(page string) error
	// Caller describes the process that runs the command. If it is nil, the
	// process is unknown and the command accepts no approval.
	Caller func() Caller
	Host   host.Host
	// ProgramNetwork selects the tools whose programs reach hosts through a proxy.
	ProgramNetwork bool
	ExtraTools     []tool.Tool // tools in addition to the built-in ones, for tests

	Customizers []agent.Option // options of tools that a session customizes, for tests
}

// BuiltinTools lists the built-in tools and those of tests.
func (w Env) BuiltinTools() []tool.Tool {
	programs := builtin.Programs
	if w.ProgramNetwork {
		programs = builtin.NetworkPrograms
	}
	return slices.Concat(builtin.Files(), programs(), builtin.Databases(), builtin.Web(), w.ExtraTools)
}
