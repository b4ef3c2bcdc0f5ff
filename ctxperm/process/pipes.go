package process

import (
	"errors"
	"os"

	"github.com/remit-dev/remit/internal/sandbox"
)

// pipes holds a program's standard files, and the other ends of them.
type pipes struct {
	in, out, err *os.File
	theirs       sandbox.Stdio
}

func newPipes(stdin bool) (p *pipes, err error) {
	p = &pipes{}
	var errs []error
	pair := func(mine, theirs **os.File, writing bool) {
		r, w, err := os.Pipe()
		errs = append(errs, err)
		*mine, *theirs = r, w
		if writing {
			*mine, *theirs = w, r
		}
	}
	pair(&p.out, &p.theirs.Out, false)
	pair(&p.err, &p.theirs.Err, false)
	if stdin {
		pair(&p.in, &p.theirs.In, true)
	}
	if err := errors.Join(errs...); err != nil {
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

// close closes the ends of this process.
func (p *pipes) close() {
	for _, f := range []*os.File{p.in, p.out, p.err} {
		_ = f.Close()
	}
}
