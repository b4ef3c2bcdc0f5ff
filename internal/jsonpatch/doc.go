// Package jsonpatch applies RFC 6902 patches to parsed values. It is stricter
// than the RFC: it rejects a member that an operation does not use, because a
// misspelled one would change something else. It compares numbers as exact
// decimals.
package jsonpatch
