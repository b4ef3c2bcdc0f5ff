package rego

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
)

// revision returns a digest of what decides: paths and texts of the modules,
// and the data. It does not depend on the location of the root of a source. A
// length precedes every part, so that no two policies share a preimage. It
// omits tests, which decide nothing.
func revision(files []file, data []byte) string {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.text, b.text)) })
	h := sha256.New()
	hashPart(h, []byte("remit policy revision 1"))
	for _, f := range files {
		if !f.isTest() {
			hashPart(h, []byte(f.path))
			hashPart(h, []byte(f.text))
		}
	}
	hashPart(h, data)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func hashPart(h hash.Hash, b []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(b)))
	h.Write(size[:])
	h.Write(b)
}

// freezeData returns the data as bytes with sorted keys, and as a value that
// shares no memory with the caller's.
func freezeData(data map[string]any) ([]byte, map[string]any, error) {
	if _, taken := data["remit"]; taken {
		return nil, nil, problems{{
			Text: `the data has a key "remit", which would stand beside the rules of package remit`,
			Fix:  "rename the key",
		}}.err()
	}
	if data == nil {
		data = map[string]any{}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, nil, problems{{Text: fmt.Sprintf("the data is not JSON: %v", err)}}.err()
	}
	frozen := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&frozen); err != nil {
		return nil, nil, problems{{Text: fmt.Sprintf("the data is not JSON: %v", err)}}.err()
	}
	return raw, frozen, nil
}
