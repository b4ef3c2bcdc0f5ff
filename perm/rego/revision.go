package rego

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
)

// revision digests what decides: names and texts of the modules, which are
// sorted already, and the data. Every part is preceded by its length, so that
// no two policies share a preimage. Tests decide nothing and are left out.
func revision(files []file, data []byte) string {
	h := sha256.New()
	part(h, []byte("remit policy revision 1"))
	for _, f := range files {
		if !f.isTest() {
			part(h, []byte(f.name))
			part(h, []byte(f.text))
		}
	}
	part(h, data)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func part(h hash.Hash, b []byte) {
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
