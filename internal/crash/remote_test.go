package crash_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// remote is a service that no crash of ours reaches: it has done what it was asked
// for, or not.
type remote struct {
	watch func(what string)

	mu      sync.Mutex        // never held across a wait
	done    map[string]int    // by tag: how often it had its effect
	undone  map[string]int    // by tag: how often that was taken back
	keys    map[string]string // operation keys that it knows, and their tags
	entered map[string]int    // by tag: how often the code of a tool was entered
}

type remoteKey struct{}

func newRemote() *remote {
	return &remote{done: map[string]int{}, undone: map[string]int{}, keys: map[string]string{}, entered: map[string]int{}}
}

func remoteOf(ctx context.Context) *remote {
	r, _ := ctx.Value(remoteKey{}).(*remote)
	return r
}

func (r *remote) clone() *remote {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &remote{done: maps.Clone(r.done), undone: maps.Clone(r.undone), keys: maps.Clone(r.keys), entered: maps.Clone(r.entered)}
}

func (r *remote) told(what string) {
	if r.watch != nil {
		r.watch(what)
	}
}

// enter notes that the code of a tool runs.
func (r *remote) enter(tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entered[tag]++
}

// post is a request that has an effect, once for each key, unless the key is empty.
func (r *remote) post(key, tag string) {
	r.mu.Lock()
	if _, known := r.keys[key]; !known || key == "" {
		r.done[tag]++
	}
	if key != "" {
		r.keys[key] = tag
	}
	r.mu.Unlock()
	r.told("request " + tag)
}

// cancel takes an effect back, once for each key.
func (r *remote) cancel(key, tag string) {
	r.mu.Lock()
	if _, known := r.keys[key]; !known || key == "" {
		r.undone[tag]++
	}
	if key != "" {
		r.keys[key] = tag
	}
	r.mu.Unlock()
	r.told("cancel " + tag)
}

// there reports whether an effect is there.
func (r *remote) there(tag string) bool { return r.count(tag) > 0 }

func (r *remote) count(tag string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done[tag] - r.undone[tag]
}

func (r *remote) times(tag string) (done, entered int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done[tag], r.entered[tag]
}

func (r *remote) describe(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, tag := range slices.Sorted(maps.Keys(r.done)) {
		_, _ = fmt.Fprintln(w, tag, r.done[tag], r.undone[tag])
	}
}
