package host

import (
	"encoding/binary"
	"time"
)

// idAlphabet is Crockford's base 32 in lower case. It has no i, l, o or u, so
// that an identifier survives reading aloud or copying by hand.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// An identifier has idTime characters of the time, and idRandom of randomness,
// five bits each.
const (
	idTime   = 4
	idRandom = 8
)

// idTick is the unit of that time, which begins again every 4.5 hours: it keeps
// identifiers of about the same time together in an index, and orders nothing.
const idTick = time.Second / 64

// NewID returns the prefix followed by twelve characters, such as
// "t_0h3k5z9q1c7e": four of the host's time, and 40 bits of its randomness. It is
// safe for concurrent use.
func NewID(h interface {
	Now() time.Time
	Random(p []byte)
}, prefix string,
) string {
	var seed [8]byte
	h.Random(seed[:])
	random, tick := binary.BigEndian.Uint64(seed[:]), h.Now().UnixNano()/int64(idTick)
	id := make([]byte, 0, len(prefix)+idTime+idRandom)
	id = append(id, prefix...)
	for i := range idTime {
		id = append(id, idAlphabet[tick>>(5*(idTime-1-i))&31])
	}
	for range idRandom {
		id = append(id, idAlphabet[random&31])
		random >>= 5
	}
	return string(id)
}
