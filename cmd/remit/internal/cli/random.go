package cli

import "crypto/rand"

// RandomBytes returns n random bytes.
func RandomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // Read of crypto/rand never returns an error
	return b
}
