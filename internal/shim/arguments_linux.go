//go:build amd64 || arm64

package shim

import _ "unsafe" // for go:linkname

// arguments returns os.Args from the source that package os uses. Importing os
// would initialize much else first. A program in a sandbox without namespaces
// may itself start a shim, and cannot read its arguments in /proc. The runtime
// exports this name, so a Go release without it would not link.
//
//go:linkname arguments os.runtime_args
func arguments() []string
