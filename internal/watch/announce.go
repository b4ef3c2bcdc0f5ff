package watch

import "sync"

// maxAnnounced bounds the announced names that no Tree has seen yet. Names above
// it are not exempt.
const maxAnnounced = 4096

// announced has the names that this process is about to create.
var announced = announcements{names: map[string]bool{}}

type announcements struct {
	mu    sync.Mutex // never held across a wait
	trees int        // without one, nothing takes a name
	names map[string]bool
}

// Announce states that this process creates a new file with this name, in one
// of its watched folders, as the first of all processes. So the name must be
// random, and the creation must fail if the name exists. A Tree then knows that
// the file has no other name, also if the name is gone before the Tree looks at
// it. The next creation of the name has no such exemption. The returned function
// must be called if the file was not created.
func Announce(base string) (withdraw func()) {
	announced.mu.Lock()
	defer announced.mu.Unlock()
	if announced.trees > 0 && len(announced.names) < maxAnnounced {
		announced.names[base] = true
	}
	return func() { announced.take(base) }
}

// take removes a name. It reports whether the name was announced.
func (a *announcements) take(base string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.names[base]
	delete(a.names, base)
	return was
}

// watching counts the trees that watch. Without one, no name is kept.
func (a *announcements) watching(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trees += n; a.trees == 0 {
		clear(a.names)
	}
}
