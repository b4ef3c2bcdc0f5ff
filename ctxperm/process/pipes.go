package process

import (
	"errors"
	"io"
	"os"

	"github.com/remit-dev/remit/internal/sandbox"
)

// pipes holds a program's standard files, and the other ends of them.
type pipes struct {
	in, out, err *os.File
	theirs       sandbox.Stdio
	tty          *terminal    // the program's terminal; nil: none
	source       *inputSource // a file of the caller that feeds the input; nil: another reader, or none
}

func newPipes(stdin bool) (p *pipes, err error) {
	p = &pipes{}
	err = errors.Join(p.outputPipe(&p.out, &p.theirs.Out), p.outputPipe(&p.err, &p.theirs.Err))
	if stdin {
		err = errors.Join(err, p.inputPipe())
	}
	return p.orClose(err)
}

// connect returns the standard files of a program with an attachment.
func connect(cmd Cmd) (p *pipes, err error) {
	p = &pipes{}
	if p.tty, err = openTerminal(cmd.Attachment, cmd.Stdin); err != nil {
		return p.orClose(err)
	}
	if p.tty != nil {
		p.out, p.theirs.Out = p.tty.master, p.tty.slave
	} else {
		err = p.outputPipe(&p.out, &p.theirs.Out)
	}
	if p.tty.has(2) {
		p.theirs.Err = p.tty.slave
	} else {
		err = errors.Join(err, p.outputPipe(&p.err, &p.theirs.Err))
	}
	if err != nil {
		return p.orClose(err)
	}
	return p.orClose(p.connectInput(cmd.Stdin))
}

// connectInput connects the standard input. nil stays empty.
func (p *pipes) connectInput(stdin io.Reader) (err error) {
	file, isFile := stdin.(*os.File)
	switch {
	case stdin == nil || isFile && inBackground(file): // it could not read the terminal either
		return nil
	case p.tty.has(0):
		p.in, p.theirs.In = p.tty.master, p.tty.slave
	default:
		if isFile {
			if p.theirs.In, err = sharePipe(file); p.theirs.In != nil || err != nil {
				return err
			}
		}
		if err := p.inputPipe(); err != nil {
			return err
		}
	}
	if isFile {
		p.source, err = newInputSource(file, p.theirs.In)
	}
	return err
}

func (p *pipes) inputPipe() (err error) {
	p.theirs.In, p.in, err = os.Pipe()
	return err
}

func (*pipes) outputPipe(mine, theirs **os.File) (err error) {
	*mine, *theirs, err = os.Pipe()
	return err
}

func (p *pipes) orClose(err error) (*pipes, error) {
	if err != nil {
		p.started()
		p.close()
		return nil, err
	}
	return p, nil
}

// started closes the program's ends, after the program has inherited them.
func (p *pipes) started() {
	for _, f := range []*os.File{p.theirs.In, p.theirs.Out, p.theirs.Err} {
		_ = f.Close() // nil is closed
	}
}

// feed writes the input of a program until the program reads no more, or until
// stopFeed.
func (p *pipes) feed(stdin io.Reader) {
	switch {
	case p.in == nil:
		return
	case p.source != nil:
		p.source.copyTo(p.in, p.tty.has(0))
	default:
		_, _ = io.Copy(p.in, stdin)
	}
	if !p.tty.has(0) {
		_ = p.in.Close()
	}
}

// stopFeed makes feed read no more of a file.
func (p *pipes) stopFeed() {
	if p.source == nil {
		return
	}
	p.source.stop()
	if !p.tty.has(0) {
		_ = p.in.Close() // it may wait for the program to read
	}
}

// close closes the ends of this process.
func (p *pipes) close() {
	for _, f := range []*os.File{p.in, p.out, p.err} {
		_ = f.Close()
	}
	p.source.close()
	p.tty.close()
}
