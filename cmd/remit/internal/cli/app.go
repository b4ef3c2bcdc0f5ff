package cli

import (
	"errors"
	"io"

	"github.com/remit-dev/remit/tool"
)

// App is one run of the command.
type App struct {
	Env
	DeclaredTools []tool.Tool          // tools as the flags declare them; nil: the built-in tools
	LeftOut       func(tool.Tool) bool // reports the tools that a gateway does not serve; nil: it serves all
	Agent         *Agent               // the coding agent that started the command; nil: none is known
	Progress      *Progress
	Output        *Output
	Code          ExitCode
	ProgramCode   int            // exit code of the program that remit exec ran
	streams       Env            // as given, for a program
	closers       []func() error // closes what the command opened
}

// NewApp returns a run of the command in an environment. The caller closes it.
func NewApp(w Env) *App {
	p, given := &Progress{host: w.Host}, w
	if w.ErrTerminal {
		p.writer, w.Err, w.Out = w.Err, progressWriter{p, w.Err}, progressWriter{p, w.Out}
	}
	out := &Output{w: w.Out}
	w.Out = out
	return &App{Env: w, Progress: p, Output: out, streams: given}
}

// Streams returns the standard files for a program. The command's own messages
// go to Out and Err.
func (a *App) Streams() (in io.Reader, out, err io.Writer) {
	return a.streams.In, a.streams.Out, a.streams.Err
}

// ExitWith makes the command end with a code, unless a worse one is set.
func (a *App) ExitWith(code ExitCode) { a.Code = Worst(a.Code, code) }

// OnClose registers a function that Close calls.
func (a *App) OnClose(fn func() error) { a.closers = append(a.closers, fn) }

// Close calls the functions of OnClose in their order, and joins their errors.
func (a *App) Close() error {
	var errs []error
	for _, c := range a.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// WriteJSON writes one JSON object to standard output, on one line.
func (a *App) WriteJSON(v any) { NewJSON(a.Out).Write(v) }

// Style returns the style of standard output. It is plain without a terminal,
// or if NO_COLOR is set.
func (a *App) Style() Style { return Style(a.OutTerminal && a.Getenv("NO_COLOR") == "") }

// ErrStyle returns the style of standard error.
func (a *App) ErrStyle() Style { return Style(a.ErrTerminal && a.Getenv("NO_COLOR") == "") }

// Person returns the user by the operating system. The journal names this user
// as the approver.
func (a *App) Person() (string, error) {
	who, err := a.Username()
	if err == nil && who != "" {
		return who, nil
	}
	return "", &Problem{Code: ExitUsage, What: "an approval needs a name: the system does not know the name of this account", Fix: "use --on-ask deny"}
}
