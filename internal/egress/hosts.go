package egress

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Host is what a proxy did for one origin.
type Host struct {
	Origin      string // scheme, host and port, such as https://packages.example.com
	Connections int
	Sent        int64  // bytes to the host, with those of TLS
	Received    int64  // bytes from the host
	Refused     string // why the last connection was refused or failed; empty: none was
	Denied      string // why the last refused connection was refused; empty: none was
}

// Reached reports whether bytes can have reached the host.
func (h Host) Reached() bool { return h.Connections > 0 }

// traffic counts for one origin. Its numbers are updated without the lock.
type traffic struct {
	origin         string // canonical
	sent, received atomic.Int64
	connections    int    // guarded by hosts.mu
	refused        string // guarded by hosts.mu
	denied         string // guarded by hosts.mu
}

// hosts are the origins of one proxy.
type hosts struct {
	mu  sync.Mutex // never held across a wait
	all map[string]*traffic
	max int
}

// of returns the counters of an origin, or nil if there are too many.
func (h *hosts) of(origin string) *traffic {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.all[origin]; t != nil || len(h.all) >= h.max {
		return t
	}
	t := &traffic{origin: origin}
	h.all[origin] = t
	return t
}

func (h *hosts) connected(t *traffic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.connections++
}

func (h *hosts) refuse(t *traffic, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.refused = why.Error()
	if errors.Is(why, ErrRefused) {
		t.denied = reason(why)
	}
}

// list returns a copy, sorted by origin.
func (h *hosts) list() []Host {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Host, 0, len(h.all))
	for origin, t := range h.all {
		all = append(all, Host{origin, t.connections, t.sent.Load(), t.received.Load(), t.refused, t.denied})
	}
	slices.SortFunc(all, func(a, b Host) int { return strings.Compare(a.Origin, b.Origin) })
	return all
}
