package process

import (
	"context"
	"io"
	"os"
	"sync"
)

// callerIO copies between a running program and its caller.
type callerIO struct {
	cmd       Cmd
	pipes     *pipes
	out, errs capture

	readers chan struct{} // closed when both outputs have ended
	fed     chan struct{} // closed when no more input is read
	turn    chan struct{} // taken while Cmd.Output is called
	over    bool          // Cmd.Output is not called any more; guarded by turn
}

// copyIO starts copying.
func copyIO(cmd Cmd, p *pipes, most int) *callerIO {
	c := &callerIO{cmd: cmd, pipes: p, readers: make(chan struct{}), fed: make(chan struct{}), turn: make(chan struct{}, 1)}
	c.out.most, c.errs.most = most, most
	var both sync.WaitGroup
	both.Go(func() { c.drain(p.out, &c.out, Stdout, cmd.Attachment.Stdout) })
	if p.err != nil {
		both.Go(func() { c.drain(p.err, &c.errs, Stderr, cmd.Attachment.Stderr) })
	}
	go func() {
		both.Wait()
		close(c.readers)
	}()
	go func() {
		defer close(c.fed)
		p.feed(cmd.Stdin)
	}()
	return c
}

// drain reads a stream to its end, and passes on each read.
func (c *callerIO) drain(from *os.File, into *capture, s Stream, to io.Writer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			into.add(buf[:n])
			c.tell(s, buf[:n])
			if to != nil {
				if _, failed := to.Write(buf[:n]); failed != nil {
					_ = from.Close() // the program learns of it by its next write
					return
				}
			}
		}
		if err != nil { // the end, or no more data can arrive
			return
		}
	}
}

func (c *callerIO) tell(s Stream, data []byte) {
	if c.cmd.Output == nil {
		return
	}
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if !c.over {
		c.cmd.Output(s, data)
	}
}

// end waits until the program's output has reached the caller, or until ctx
// ends: a caller that does not read must not keep a killed program's call. It
// closes the pipes.
func (c *callerIO) end(ctx context.Context) {
	select {
	case <-c.readers:
	case <-ctx.Done():
	}
	c.turn <- struct{}{}
	c.over = true
	<-c.turn
	c.pipes.stopFeed()
	if c.pipes.source.onDisk() {
		<-c.fed
		c.pipes.source.rewind()
	}
	c.pipes.close()
}
