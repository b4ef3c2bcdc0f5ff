//go:build cgo

package web_test

// withCgo: there is a C resolver.
const withCgo = true
