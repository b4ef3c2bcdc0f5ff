package simjournal

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Store is the shared state of several openings of one journal. Its methods are
// safe for concurrent use.
type Store struct {
	watch func(op string)

	mu      sync.Mutex // never held across a wait
	steps   []step     // everything that was written
	durable int        // number of durable steps
	opened  int
	alive   map[string]bool
	lost    map[string]bool   // live owners that are reported dead
	large   map[string][]byte // content that is part of no batch
	state   state
	tree    tree
}

// step is one write: a batch, or deleted content.
type step struct {
	batch journal.Batch
	drop  []string
}

// state is the result of the steps.
type state struct {
	entries []record.Entry // in a new list whenever one changes
	blobs   map[string][]byte
	txns    map[string]txn
	open    []string // transactions that have not ended, oldest first
	claims  map[string]string
}

type txn struct {
	owner string
	ended bool
}

// tree is the hash tree over the first entries.
type tree struct {
	tree   journal.Tree
	hashes []tlog.Hash
}

// NewStore returns an empty Store.
func NewStore() *Store {
	return &Store{alive: map[string]bool{}, lost: map[string]bool{}, large: map[string][]byte{}, state: newState()}
}

func newState() state {
	return state{blobs: map[string][]byte{}, txns: map[string]txn{}, claims: map[string]string{}}
}

// Watch makes the store call f after each write and each barrier, on the
// goroutine that made it. A clone is not watched.
func (s *Store) Watch(f func(op string)) { s.watch = f }

func (s *Store) notify(op string) {
	if s.watch != nil {
		s.watch(op)
	}
}

// Open returns one more opening of the journal.
func (s *Store) Open() journal.Journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	owner := fmt.Sprintf("sim-%d", s.opened)
	s.alive[owner] = true
	return &opening{store: s, owner: owner}
}

// Clone returns a store in the same state, without openings.
func (s *Store) Clone() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Store{
		steps: slices.Clip(s.steps), durable: s.durable, opened: s.opened, alive: map[string]bool{}, lost: map[string]bool{}, large: maps.Clone(s.large),
		state: s.state.clone(), tree: tree{s.tree.tree, slices.Clip(s.tree.hashes)},
	}
}

func (s state) clone() state {
	return state{
		entries: slices.Clip(s.entries), blobs: maps.Clone(s.blobs), txns: maps.Clone(s.txns),
		open: slices.Clone(s.open), claims: maps.Clone(s.claims),
	}
}

// Lose makes the store report an owner dead that lives on. That happens when
// the proof of life is lost first: a stopped machine, or a lock that a server
// released. The fence of each batch decides on its later writes.
func (s *Store) Lose(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[owner] = true
}

// Crash ends every process that has the journal open. Nothing is lost.
func (s *Store) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.alive)
}

// Pending returns the number of writes that are not durable.
func (s *Store) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steps) - s.durable
}

// Cut is a power failure: the last lost writes are gone, and all others are
// durable. It panics if one of those was durable.
func (s *Store) Cut(lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := len(s.steps) - lost
	if left < s.durable {
		panic("simjournal: what is durable cannot be lost")
	}
	clear(s.alive)
	s.durable = left
	if lost == 0 {
		return
	}
	s.steps, s.state, s.tree = slices.Clip(s.steps[:left]), newState(), tree{}
	for _, st := range s.steps {
		s.apply(st)
	}
}

// Describe writes the records without times, salts and leaves, the claims, and
// the number of durable records. Equal texts are equal states.
func (s *Store) Describe(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.state.entries {
		h := e.Header
		_, _ = io.WriteString(w, string(h.Kind)+"\x00"+h.Session+"\x00"+h.Txn+"\x00"+h.Call+"\x00"+e.Erased+"\x00")
		_, _ = w.Write(e.Body)
		_, _ = io.WriteString(w, "\n")
	}
	lost := 0
	for _, st := range s.steps[s.durable:] {
		lost += len(st.batch.Entries)
	}
	_, _ = fmt.Fprintln(w, s.state.open, s.state.claims, lost, len(s.large))
}

// apply applies a step.
func (s *Store) apply(st step) {
	for _, digest := range st.drop {
		delete(s.state.blobs, digest)
	}
	s.state.take(st.batch.Take)
	s.state.erase(st.batch.Erase)
	for _, blob := range st.batch.Blobs {
		if data, inline := blob.Inline().Get(); inline {
			s.state.blobs[blob.Ref().Digest] = data
		}
	}
	for _, e := range st.batch.Entries {
		e.Pos = int64(len(s.state.entries)) + 1
		s.state.entries = append(s.state.entries, e)
	}
	for _, resource := range st.batch.Claims {
		s.state.claims[resource] = st.batch.Fence.Txn
	}
	if st.batch.End {
		s.state.end(st.batch.Fence.Txn)
	}
}

func (s *state) take(t journal.OwnerChange) {
	if t.To.Txn == "" {
		return
	}
	if _, known := s.txns[t.To.Txn]; !known {
		s.open = append(s.open, t.To.Txn)
	}
	s.txns[t.To.Txn] = txn{owner: t.To.Owner}
}

func (s *state) end(id string) {
	s.txns[id] = txn{owner: s.txns[id].owner, ended: true}
	s.open = slices.DeleteFunc(slices.Clone(s.open), func(t string) bool { return t == id })
	maps.DeleteFunc(s.claims, func(_, holder string) bool { return holder == id })
}

func (s *state) erase(calls []string) {
	if len(calls) == 0 {
		return
	}
	s.entries = slices.Clone(s.entries)
	for i, e := range s.entries {
		if e.Header.Kind.Erasable() && slices.Contains(calls, e.Header.Call) {
			e.Erased, e.Salt, e.Body = e.BodyDigest(), nil, nil
			if gone, err := e.Checked(); err == nil {
				e = gone // which does not keep the decoded body
			}
			s.entries[i] = e
		}
	}
}

// content returns the content with a digest.
func (s *Store) content(digest string) ([]byte, bool) {
	if data, ok := s.state.blobs[digest]; ok {
		return data, true
	}
	data, ok := s.large[digest]
	return data, ok
}

// grown returns the tree over all entries.
func (s *Store) grown() tree {
	for _, e := range s.state.entries[s.tree.tree.Size():] {
		var whole []tlog.Hash
		s.tree.tree, whole = s.tree.tree.Add(e.Leaf)
		s.tree.hashes = append(s.tree.hashes, whole...)
	}
	return s.tree
}

// clone copies an entry whose bytes other goroutines may change. The copy is
// one allocation.
func clone(e record.Entry) record.Entry {
	all := make([]byte, 0, len(e.Head)+len(e.Salt)+len(e.Body))
	own := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		at := len(all)
		all = append(all, b...)
		return all[at:len(all):len(all)]
	}
	e.Head, e.Salt, e.Body = own(e.Head), own(e.Salt), own(e.Body)
	return e
}
