package rego

import (
	"bytes"
	"encoding/json"
	"hash/maphash"

	"github.com/go-json-experiment/json/jsontext"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/remit-dev/remit/perm"
)

// DefaultCacheSize is the default of Options.CacheSize.
const DefaultCacheSize = 1024

// maxKey bounds the key of one cached decision. A call with long arguments that
// the policy reads is decided anew each time.
const maxKey = 4 << 10

// decisionCache caches decisions by everything that the policy read for them.
// It finds them by a hash of the key, and compares the whole key. Each Engine
// has its own cache, so no decision outlives its policy. A nil decisionCache
// caches nothing.
type decisionCache struct {
	seed      maphash.Seed
	decisions *lru.Cache[uint64, cachedDecision]
}

// cachedDecision is a decision and the key that it belongs to.
type cachedDecision struct {
	key      string
	decision perm.Decision
}

// newDecisionCache returns a cache for size decisions.
func newDecisionCache(size int) (*decisionCache, error) {
	if size < 0 {
		return nil, nil //nolint:nilnil // a nil cache caches nothing
	}
	if size == 0 {
		size = DefaultCacheSize
	}
	cache, err := lru.New[uint64, cachedDecision](size)
	return &decisionCache{seed: maphash.MakeSeed(), decisions: cache}, err
}

func (m *decisionCache) get(key []byte) (perm.Decision, bool) {
	found, known := m.decisions.Get(maphash.Bytes(m.seed, key))
	//mutant:check
	if !known || found.key != string(key) {
		return perm.Decision{}, false
	}
	return found.decision, true
}

func (m *decisionCache) put(key []byte, d perm.Decision) {
	m.decisions.Add(maphash.Bytes(m.seed, key), cachedDecision{string(key), d})
}

// member returns the text at a path of names inside a JSON text, or nil if
// there is none. The last of several members with one name counts, as in the
// document.
func member(text json.RawMessage, path []string) ([]byte, error) {
	for _, name := range path {
		inside, err := child(text, name)
		if err != nil || inside == nil {
			return nil, err
		}
		text = inside
	}
	return text, nil
}

func child(text []byte, name string) ([]byte, error) {
	if text = bytes.TrimLeft(text, " \t\r\n"); len(text) == 0 || text[0] != '{' {
		return nil, nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var found []byte
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		same := token.String() == name
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if same {
			found = bytes.Clone(value)
		}
	}
	_, err := dec.ReadToken() // the closing brace, or an error
	return found, err
}
