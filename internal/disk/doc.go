// Package disk accesses the files below one open directory, through an
// interface small enough for a simulated disk.
//
// # Authority
//
// A path has authority only as a pair: an open [Root] and a clean, relative,
// slash-separated name below it, as [CheckPath] accepts it. No code joins a
// name to a host path or compares two paths as strings. The kernel decides what
// a name reaches while it walks from the root's descriptor.
//
// # Symbolic links
//
// A walk follows a link among the parents of a name if it stays beneath the
// root, and otherwise fails with [ErrEscape]. It refuses absolute targets even
// if they lead back inside. Only [Root.Open] follows a link as the last
// element, under the same rule. Every other operation acts on the link itself
// or refuses it. This package does not check the target of a new link: the
// layer that knows the grant must do that.
//
// # Platforms
//
// On Linux every walk is one openat2 with RESOLVE_BENEATH, NO_MAGICLINKS and
// NO_XDEV. If that call is missing, and on other systems, os.Root walks, which
// follows mounts. A file on another mount (before Linux 5.8 and elsewhere: on
// another device) is refused afterwards. [Features] reports which promises
// hold, so that a caller can decide about a weaker platform. Of all permission
// bits, Windows keeps only the owner's right to write.
package disk
