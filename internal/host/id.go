package host

import "encoding/binary"

// idAlphabet is Crockford's base 32 in lower case. It has no i, l, o or u, so
// that an identifier survives reading aloud or copying by hand.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// idLength is the number of characters after the prefix, five bits each.
const idLength = 12

// NewID returns the prefix followed by 60 bits of the host's randomness in
// twelve characters, such as "t_0h3k5z9q1c7e". It is safe for concurrent use.
func NewID(h interface{ Random(p []byte) }, prefix string) string {
	var seed [8]byte
	h.Random(seed[:])
	bits := binary.BigEndian.Uint64(seed[:])
	id := make([]byte, idLength)
	for i := range id {
		id[i] = idAlphabet[bits&31]
		bits >>= 5
	}
	return prefix + string(id)
}
