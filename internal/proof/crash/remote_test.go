package crash_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// remote is a service, and a database, that no crash of the test reaches: a
// request had its effect, or not.
type remote struct {
	watch func(what string)

	mu      sync.Mutex        // never held across a wait
	done    map[string]int    // by tag: number of effects
	reverts map[string]int    // by tag: number of reverts
	keys    map[string]bool   // operation keys that it knows
	entered map[string]int    // by tag: how often the code of a tool started
	rows    map[string]string // of the only table
	ops     map[string]bool   // operation keys of committed transactions
}

type remoteKey struct{}

func newRemote() *remote {
	return &remote{
		done: map[string]int{}, reverts: map[string]int{}, keys: map[string]bool{}, entered: map[string]int{},
		rows: map[string]string{"1": "one", "2": "two"}, ops: map[string]bool{},
	}
}

func remoteOf(ctx context.Context) *remote {
	r, _ := ctx.Value(remoteKey{}).(*remote)
	return r
}

func (r *remote) clone() *remote {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &remote{
		done: maps.Clone(r.done), reverts: maps.Clone(r.reverts), keys: maps.Clone(r.keys), entered: maps.Clone(r.entered),
		rows: maps.Clone(r.rows), ops: maps.Clone(r.ops),
	}
}

// change runs f on the service, and calls the watcher.
func (r *remote) change(what string, f func()) {
	r.mu.Lock()
	f()
	r.mu.Unlock()
	if r.watch != nil {
		r.watch(what)
	}
}

// enter counts that the code of a tool started.
func (r *remote) enter(tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entered[tag]++
}

// post is a request with an effect, once for each key, unless the key is empty.
func (r *remote) post(key, tag string) { r.change("post "+tag, func() { r.once(key, tag, r.done) }) }

// cancel reverts an effect, in the same way.
func (r *remote) cancel(key, tag string) {
	r.change("cancel "+tag, func() { r.once(key, tag, r.reverts) })
}

func (r *remote) once(key, tag string, counts map[string]int) {
	if key == "" || !r.keys[key] {
		counts[tag]++
	}
	if key != "" {
		r.keys[key] = true
	}
}

// knows reports whether a request with the key arrived.
func (r *remote) knows(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[key]
}

// of returns the counts of one call.
func (r *remote) of(tag string) (done, undone, entered int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done[tag], r.reverts[tag], r.entered[tag]
}

func (r *remote) table() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.rows)
}

func (r *remote) describe(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, tag := range slices.Sorted(maps.Keys(r.done)) {
		_, _ = fmt.Fprintln(w, tag, r.done[tag], r.reverts[tag])
	}
	_, _ = fmt.Fprintln(w, r.rows, len(r.ops))
}
