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

// ProgressInterval is the delay before the first progress line, and the
// interval between lines.
const ProgressInterval = time.Second

// Progress is a line at the bottom of a terminal that names what takes long. It
// goes to standard error. The command removes it before it writes anything
// else.
type Progress struct {
	writer io.Writer // nil: standard error is not a terminal
	host   host.Host
	began  time.Time

	mu    sync.Mutex // held during a write, so that the line never appears inside other output
	doing string     // empty: there is nothing to show
	shown bool
}

// Start starts a goroutine that draws the line. It returns a function that ends
// the goroutine and removes the line.
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

// Show sets the text of the line. The empty text removes the line.
func (p *Progress) Show(doing string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = doing
	if doing == "" {
		p.remove()
	}
}

// Report shows the progress that a tool reports. It does nothing while the line
// is held.
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
	if p.doing != "" { // otherwise a person answers a prompt
		p.doing = text
	}
}

// Hold removes the line while a person answers. It returns a function that
// shows the line again.
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
	p.remove()
	p.shown = true
	_, _ = fmt.Fprintf(p.writer, "… %s (%d s)", Clip(Printable(p.doing), 60), max(seconds, 0))
}

func (p *Progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove()
}

// remove removes the line. The caller holds mu.
func (p *Progress) remove() {
	if p.shown {
		_, _ = io.WriteString(p.writer, "\r\x1b[K")
		p.shown = false
	}
}

// progressWriter removes the progress line before each write.
type progressWriter struct {
	progress *Progress
	w        io.Writer
}

// Write removes the line and writes b.
func (a progressWriter) Write(b []byte) (int, error) {
	a.progress.mu.Lock()
	defer a.progress.mu.Unlock()
	a.progress.remove()
	return a.w.Write(b)
}
