package sqlite

import (
	"sync"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// unnamedBlobs counts by digest the large content that this opening has stored
// and that none of its entries names yet. A call names its content in a later
// step, possibly at its end, and a concurrent collection must not delete it.
// Content that a call never named stays counted until its file is older than
// young.
type unnamedBlobs struct {
	mu sync.Mutex // never held across I/O
	of map[string]int
}

func (k *unnamedBlobs) add(ref effect.BlobRef) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[string]int{}
	}
	k.of[ref.Digest]++
}

// named removes content that is on the journal now.
func (k *unnamedBlobs) named(blobs []journal.Blob) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range blobs {
		switch digest := b.Ref().Digest; {
		case k.of[digest] > 1:
			k.of[digest]--
		default:
			delete(k.of, digest)
		}
	}
}

func (k *unnamedBlobs) has(digest string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[digest] > 0
}

func (k *unnamedBlobs) forget(digest string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, digest)
}
