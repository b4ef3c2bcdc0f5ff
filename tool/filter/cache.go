package filter

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// Cache answers calls that were answered before: of tools that change nothing and read
// nothing, whose result therefore follows from the input. Such a tool is of class pure,
// has no needs, and says that it acts only through handles; one that is trusted may look
// at a clock or a file, and always runs.
//
// A result is given again in the same session, with the same labels, under the same policy
// revision, by the very same tool with the same settings, for the same input. Under a
// policy that names no revision nothing is kept. What another filter answered is not kept
// either; what filters behind this one make of a result is, so it stands last. The zero
// Cache takes the defaults.
type Cache struct {
	MaxEntries int           // results that are kept at most; default 1000
	MaxBytes   int           // of all of them together; default 16 MiB
	TTL        time.Duration // for how long one is given again; 0: until newer ones displace it
}

// Filter makes the filter "cache", with nothing in it. It returns an error if a
// bound is negative.
func (c Cache) Filter() (Filter, error) {
	if c.MaxEntries < 0 || c.MaxBytes < 0 || c.TTL < 0 {
		return Filter{}, errors.New("filter cache: MaxEntries, MaxBytes and TTL must not be negative")
	}
	if c.MaxEntries == 0 {
		c.MaxEntries = 1000
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 16 << 20
	}
	k := &resultCache{bounds: c, of: map[key]*list.Element{}}
	return Filter{Name: "cache", Before: k.before, After: k.after, Ended: k.ended}, nil
}

// resultCache are results, the one that was used last in front.
type resultCache struct {
	bounds Cache

	mu    sync.Mutex // never held across a wait
	of    map[key]*list.Element
	order list.List
	bytes int
}

// key is what a result depends on. The tool is the one that the runtime has: another one
// of the same declaration may have other code.
type key struct {
	tool tool.Tool
	rest canon.Digest
}

type entry struct {
	key    key
	result []byte // canonical
	at     time.Time
}

// newEntry is a result on its way through the filters, under a key that is the kept's own.
type newEntry struct{ entry }

// keyOf is what the result of a call depends on; ok is false for one that cannot be
// answered so.
func keyOf(f Call) (k key, ok bool) {
	t, revision := f.Tool(), f.Decision().Revision
	if f.Released() || revision == "" || f.Class() != effect.Pure || !readsNothing(t) {
		return key{}, false
	}
	who, err := canon.Marshal(f.Principal())
	if err != nil {
		return key{}, false
	}
	labels, err := canon.Marshal(f.Labels())
	if err != nil {
		return key{}, false
	}
	return key{t, canon.Sum("remit/cache-key/v1", []byte(f.Session()), who, labels, []byte(revision), []byte(t.Digest()), []byte(t.SettingsDigest()), f.Input())}, true
}

// readsNothing: a tool that acts only through handles, and needs none.
func readsNothing(t tool.Tool) bool {
	s := t.Spec()
	return t.Class() == effect.Pure && s.Confinement == tool.Handles && len(s.Needs) == 0 && s.AccessFor == nil
}

func (k *resultCache) before(_ context.Context, f Call) error {
	of, ok := keyOf(f)
	if !ok {
		return nil
	}
	if raw, ok := k.find(of, f.Now()); ok {
		var r tool.Result
		if err := json.Unmarshal(raw, &r); err == nil {
			f.Answer(r)
		}
	}
	return nil
}

// after remembers what was returned, for the case that the call ends done.
func (k *resultCache) after(_ context.Context, f Call, r tool.Result) (tool.Result, error) {
	if of, ok := keyOf(f); ok {
		if raw, err := canon.Marshal(r); err == nil {
			f.Properties().Store(k, newEntry{entry{key: of, result: raw, at: f.Now()}})
		}
	}
	return r, nil
}

func (k *resultCache) ended(_ context.Context, f Call, o tool.Outcome) {
	if o.Status != tool.StatusDone || o.Filter != "" {
		return
	}
	if v, ok := f.Properties().Load(k); ok {
		if n, ok := v.(newEntry); ok {
			k.put(n.entry)
		}
	}
}

func (k *resultCache) find(of key, now time.Time) ([]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, ok := k.of[of]
	if !ok {
		return nil, false
	}
	e, _ := at.Value.(*entry)
	if age := now.Sub(e.at); k.bounds.TTL > 0 && (age < 0 || age >= k.bounds.TTL) {
		k.drop(at)
		return nil, false
	}
	k.order.MoveToFront(at)
	return e.result, true
}

func (k *resultCache) put(e entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at, there := k.of[e.key]; there {
		k.drop(at)
	}
	if len(e.result) > k.bounds.MaxBytes {
		return
	}
	k.of[e.key] = k.order.PushFront(&e)
	k.bytes += len(e.result)
	for k.order.Len() > k.bounds.MaxEntries || k.bytes > k.bounds.MaxBytes {
		k.drop(k.order.Back())
	}
}

// drop is called with the lock.
func (k *resultCache) drop(at *list.Element) {
	e, _ := k.order.Remove(at).(*entry)
	delete(k.of, e.key)
	k.bytes -= len(e.result)
}
