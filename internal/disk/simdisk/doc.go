// Package simdisk is a file system in memory. After a power failure it loses
// data that was not made durable, as a real one may.
//
// # What an operation is
//
// A [Disk] holds two states: the one that programs see, and the one on the
// medium. Every change is an operation of its own, in the order in which it was
// made: one change of entries (a create, a link, an unlink, a rename or an
// exchange, with both of its sides), one write of content, or one change of an
// inode's bits, owner, time or attributes. An access control list is an
// attribute like any other here. An operation is pending until it is made
// durable:
//
//   - Sync on a file makes its content, bits, time and attributes durable, and
//     not
//     its name. So a file that was synced can be without a name after a crash, and a
//     name can lead to a file without its content.
//   - SyncDir makes the entries of that directory durable, and its own bits,
//     and
//     the existence of an entry's inode.
//   - SyncAll makes everything durable.
//
// # What a crash does
//
// If a process dies ([Disk.Die]), nothing is lost. Pending operations stay
// pending, and a later crash may still lose them. A program that reads a file
// after a crash, and assumes that it sees the content of the disk, then goes
// wrong.
//
// If the power fails ([Disk.Cut]), any part of the pending operations is on the
// medium, under these rules only:
//
//   - One change of entries is complete or missing: rename, exchange and
//     similar
//     operations are atomic, as on every file system with a journal.
//   - If changes of entries share a name or an inode, a later one is present
//     only if
//     the earlier one is. A change in a directory is present only with the changes
//     that gave the directory its name. A change of that name is present only with
//     the earlier changes in the directory: no file system with a log restores an
//     entry without its path. Other changes are present in any combination, also in
//     one directory, although the file systems in use would keep their order.
//   - Changes of one inode's bits, time and attributes keep their order. They
//     are
//     independent of its content, of which any writes may be missing. The missing
//     data is then zeros, or nothing at the end of the file. The last write may be
//     incomplete.
//   - A link's target, and the bits of a new file or directory, are present
//     with its
//     name.
//
// These rules are weaker than ext4, xfs or btrfs in their usual modes. Those
// keep more of the order among entries, and Sync of a new file makes its name
// durable as well. The rules are as weak as POSIX allows for a file system with
// a journal. The package does not model other faults of real disks: flipped
// bits and unreadable sectors.
package simdisk
