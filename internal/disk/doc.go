// Package disk holds the files under one open directory, as an interface
// small enough that a simulated disk can stand in for the real one.
//
// # Authority
//
// A path has authority only as a pair: an open [Root] and a clean, relative,
// slash-separated name below it, as [CheckPath] accepts it. A name is never
// joined to a host path and no two paths are compared as strings; what a
// name reaches is decided by the kernel while it walks from the root's
// descriptor.
//
// # Symbolic links
//
// A link among the parents of a name is followed when the walk stays beneath
// the root, and refused with [ErrEscape] otherwise. Absolute targets are
// refused also when they would lead back inside. A link as the last element
// is followed by [Root.Open] only, under the same rule; every other operation
// acts on the link itself or refuses it. What a new link points to is not
// judged here: the layer that knows the grant must do that.
//
// # Platforms
//
// On Linux every walk is one openat2 with RESOLVE_BENEATH, NO_MAGICLINKS and
// NO_XDEV. Where that call is missing, and on other systems, the walk is made
// by os.Root, which follows mounts; what it found on another mount (before
// Linux 5.8 and elsewhere: on another device) is refused afterwards.
// [Features] tells a caller which promises hold, so that a weaker platform is
// a decision and not a surprise. Windows keeps of all permission bits only
// the owner's right to write.
package disk
