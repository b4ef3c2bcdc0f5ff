// Package jsonpatch applies RFC 6902 patches to parsed values. It is stricter than the
// RFC in what a patch may look like: a member that an operation has no use for is refused,
// since a misspelt one would change something else than was meant. Numbers are compared as
// the exact decimals that they are.
package jsonpatch
