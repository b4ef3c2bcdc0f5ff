package cli

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/tool"
)

// ProgressInterval is how long the command says nothing before it says what it does, and
// how often it says it again.
const ProgressInterval = time.Second

// Progress is a line at the bottom of a terminal about what takes long. It goes
// to the error output, and away before anything else is written; where that is
// no terminal there is none.
type Progress struct {
	writer io.Writer // nil: nobody sees it
	host   host.Host
	began  time.Time

	mu    sync.Mutex // held while something is written, so that the line is never in the middle of it
	doing string     // empty: nothing that takes time
	shown bool
}

// Start begins to look at the clock, and returns what ends that.
func (p *Progress) Start(ctx context.Context) (stop func()) {
	if p.writer == nil {
		return func() {}
	}
	p.began = p.host.Now()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			tick, free := p.host.WithTimeout(ctx, ProgressInterval, nil)
			<-tick.Done()
			free()
			if ctx.Err() != nil {
				return
			}
			p.draw()
		}
	}()
	return func() {
		cancel()
		<-done
		p.clear()
	}
}

// Show says what is being done; the empty text, that it is waited for somebody.
func (p *Progress) Show(doing string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = doing
	if doing == "" {
		p.wipe()
	}
}

// Report is what a tool says of how far its call is.
func (p *Progress) Report(t tool.Progress) {
	text := t.Tool
	switch {
	case t.Total > 0:
		text += fmt.Sprintf(" %g of %g", t.Done, t.Total)
	case t.Done > 0:
		text += fmt.Sprintf(" %g", t.Done)
	}
	if t.Message != "" {
		text += ": " + t.Message
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doing != "" { // else a person is asked
		p.doing = text
	}
}

// Hold keeps the line away until it is released: a person is asked.
func (p *Progress) Hold() (release func()) {
	p.mu.Lock()
	was := p.doing
	p.mu.Unlock()
	p.Show("")
	return func() { p.Show(was) }
}

func (p *Progress) draw() {
	seconds := int(p.host.Now().Sub(p.began) / time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doing == "" {
		return
	}
	p.wipe()
	p.shown = true
	_, _ = fmt.Fprintf(p.writer, "… %s (%d s)", Clip(Printable(p.doing), 60), max(seconds, 0))
}

func (p *Progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

// wipe takes the line away; mu is held.
func (p *Progress) wipe() {
	if p.shown {
		_, _ = io.WriteString(p.writer, "\r\x1b[K")
		p.shown = false
	}
}

// progressWriter writes to the terminal that the line is on, or to another place.
type progressWriter struct {
	progress *Progress
	w        io.Writer
}

// Write takes the line away first.
func (a progressWriter) Write(b []byte) (int, error) {
	a.progress.mu.Lock()
	defer a.progress.mu.Unlock()
	a.progress.wipe()
	return a.w.Write(b)
}
