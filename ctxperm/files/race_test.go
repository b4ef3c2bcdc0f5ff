package files_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/revert/effect"
)

// writer writes to one file as fast as possible, in another goroutine. It loses
// nothing itself: it appends, or creates the file if there is none.
type writer struct {
	path string
	stop chan struct{}
	done chan []string
}

func (w *testEnv) writer(name string) *writer {
	r := &writer{path: filepath.Join(w.dir, name), stop: make(chan struct{}), done: make(chan []string)}
	go r.run()
	return r
}

func (r *writer) run() {
	var wrote []string
	for n := 0; ; n++ {
		select {
		case <-r.stop:
			r.done <- wrote
			return
		default:
		}
		text := fmt.Sprintf("<%d>", n)
		if r.write(text, n%3 == 0) {
			wrote = append(wrote, text)
		}
		runtime.Gosched()
	}
}

// write appends, or creates the file if it does not exist.
func (r *writer) write(text string, fresh bool) bool {
	flags := os.O_WRONLY | os.O_APPEND
	if fresh {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(r.path, flags, 0o644)
	if err != nil {
		return false
	}
	_, err = f.WriteString(text)
	return f.Close() == nil && err == nil
}

func (r *writer) end() []string {
	close(r.stop)
	return <-r.done
}

// TestRacingWriter writes at random in another goroutine while files are
// written, deleted and restored. Afterwards, all successfully written text is
// in the folder or in a blob that the journal names.
func TestRacingWriter(t *testing.T) {
	rounds := 300
	if planStep() == 1 {
		rounds = 5_000
	}
	outcomes := map[effect.Outcome]int{}
	for round := range rounds {
		w := newTestEnv(t)
		if !w.root.Features().Exchange || !w.root.Features().Lease {
			t.Skip("others lose bytes here, as the package says")
		}
		w.createFiles()
		r := w.writer("a.txt")
		_ = w.do(w.host(), func(ctx context.Context, f *files.Files) error {
			if round%2 == 0 {
				return f.Delete(ctx, "a.txt")
			}
			return f.Write(ctx, "a.txt", []byte("ours"), files.WriteOptions{})
		})
		for _, item := range w.revert().Items {
			outcomes[item.Outcome]++
		}
		wrote := r.end()
		var all strings.Builder
		for _, blob := range w.kept() {
			_, _ = io.WriteString(&all, blob)
		}
		for name, e := range w.tree() {
			require.NotContains(t, name, files.StagePrefix)
			_, _ = io.WriteString(&all, e.data)
		}
		for _, text := range wrote {
			require.Contains(t, all.String(), text)
		}
		w.end()
	}
	t.Logf("%v", outcomes)
}
