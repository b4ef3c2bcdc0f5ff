//go:build !cgo

package web_test

// withCgo: there is no C resolver.
const withCgo = false
