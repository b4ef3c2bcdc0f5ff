//go:build amd64 || arm64

package shim

import _ "unsafe" // for go:linkname

// arguments are what package os calls os.Args, taken from where it takes them: with
// package os much else would be initialised first, and the file of /proc that has
// them cannot be read by a program in a sandbox without namespaces, which may itself
// start a shim. The runtime offers this by name, so that a release of Go without it
// would not link.
//
//go:linkname arguments os.runtime_args
func arguments() []string
