package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const digestPrefix = "sha256:"

// packDigest returns a digest as it is stored: its bytes without the prefix.
// Text that is no digest is stored as it is.
func packDigest(digest string) []byte {
	if digits, ok := strings.CutPrefix(digest, digestPrefix); ok && strings.ToLower(digits) == digits {
		if b, err := hex.DecodeString(digits); err == nil && len(b) == sha256.Size {
			return b
		}
	}
	return []byte(digest)
}

// unpackDigest returns the text of a stored digest. Invalid bytes fit no entry.
func unpackDigest(b []byte) string {
	if len(b) != sha256.Size {
		return string(b)
	}
	return digestPrefix + hex.EncodeToString(b)
}
