package process

import (
	"context"
	"io"
	"syscall"
	"time"
)

// Attachment connects a program to its caller, such as a person at a terminal
// or a coding agent. The journal does not record it, and the policy does not
// see it. The zero Attachment connects nothing.
//
// If Stdout is an *os.File that is a terminal, the program gets a terminal of
// its own for it, and for each of Stdin and Stderr that is a terminal too. Its
// size follows that of Stdout. While the program runs, a terminal in Stdin is in
// raw mode. What the program writes to its terminal is in Result.Stdout.
//
// A program never gets a file of the caller, because it could change the mode
// and the times of such a file, which no revert knows. Run copies instead. The
// exception is a pipe in Stdin, which has neither.
type Attachment struct {
	// Stdin is the standard input. It replaces Cmd.Stdin if it is not nil. Of
	// an *os.File, Run reads nothing after the end of the program, and a file on
	// disk is then at the position up to which the program has read. Another
	// reader can be read until its next Read returns.
	Stdin io.Reader

	// Stdout and Stderr receive all that the program writes, as it comes. Result
	// still keeps a bounded part. If a write fails, the program's stream is
	// closed, as if the reader of a pipe had gone. nil: only Result has it.
	Stdout, Stderr io.Writer

	// Signals are sent to the program's process group while it runs. After
	// SIGINT, SIGTERM or SIGHUP it has the time Grace to end. After SIGWINCH its
	// terminal gets the size of Stdout.
	Signals <-chan syscall.Signal
	Grace   time.Duration // default 10 seconds

	// Environment is what the program gets of the caller's environment.
	Environment Environment
}

// defaultGrace is the time in which a program must end after a signal.
const defaultGrace = 10 * time.Second

type attachmentKey struct{}

// Attach returns a context in which Run connects a program to a caller, unless
// its command has an Attachment of its own. So a caller can connect the program
// of a tool that it invokes by name.
func Attach(ctx context.Context, a Attachment) context.Context {
	return context.WithValue(ctx, attachmentKey{}, &a)
}

// attached returns the command with its attachment.
func (c Cmd) attached(ctx context.Context) Cmd {
	if c.Attachment == nil {
		c.Attachment, _ = ctx.Value(attachmentKey{}).(*Attachment)
	}
	if c.Attachment == nil {
		c.Attachment = &Attachment{}
	}
	if c.Attachment.Stdin != nil {
		c.Stdin = c.Attachment.Stdin
	}
	return c
}
