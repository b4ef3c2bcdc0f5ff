package define

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/tool"
)

// Watcher is a folder of definitions that is read again when it changes. A call sees the
// tools that there were when it began, and a bad file leaves those that are in force.
type Watcher struct {
	dir             string
	implementations map[string]Implementation
	use             func([]tool.Tool) error
	opts            []Option

	mu      sync.Mutex // never held across a wait
	began   uint64     // number of the newest reload
	current uint64     // number of the reload whose tools are in force
	digests string     // of those
}

// Open loads a folder and hands its tools to use, here and after each change; use puts them
// in force, as agent.Runtime.SetTools does, and is not run twice at once. Open returns an error if use is nil.
func Open(dir string, implementations map[string]Implementation, use func([]tool.Tool) error, opts ...Option) (*Watcher, error) {
	if use == nil {
		return nil, errors.New("define: the function that uses the tools is nil")
	}
	l := &Watcher{dir: dir, implementations: implementations, use: use, opts: opts}
	if _, err := l.Reload(); err != nil {
		return nil, err
	}
	return l, nil
}

// Reload reads the folder again, and reports whether other tools are in force than before.
// With an error the old ones stay. Of reloads at the same time, one that began earlier never
// replaces what a later one read.
func (l *Watcher) Reload() (changed bool, err error) { return l.reload(context.Background()) }

// reload puts nothing in force any more once ctx has ended.
func (l *Watcher) reload(ctx context.Context) (changed bool, err error) {
	number := l.begin()
	tools, err := Load(os.DirFS(l.dir), l.implementations, l.opts...)
	if err != nil {
		return false, l.kept(err)
	}
	var digests strings.Builder
	for _, t := range tools {
		_, _ = fmt.Fprintln(&digests, t.Digest(), t.Spec().Provenance.Digest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if number < l.current || l.current > 0 && digests.String() == l.digests {
		return false, nil
	}
	if err := l.use(slices.Clip(tools)); err != nil {
		return false, l.kept(err)
	}
	l.current, l.digests = number, digests.String()
	return true, nil
}

func (l *Watcher) kept(err error) error {
	return fmt.Errorf("the definitions of %s were not taken, those from before stay:\n%w", l.dir, err)
}

func (l *Watcher) begin() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began++
	return l.began
}
