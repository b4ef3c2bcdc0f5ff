// Package simdisk is a file system in memory that forgets, as a real one may,
// what was not made durable when the power went.
//
// # What an operation is
//
// A [Disk] holds two states: the one that programs see, and the one that is on the
// medium. Every change is an operation of its own, in the order in which it was
// made: one change of entries (a create, a link, an unlink, a rename or an exchange,
// with both of its sides), one write of content, or one change of an inode's bits,
// owner, time or attributes. An access control list is an attribute like any other here. It is pending until it is made durable:
//
//   - Sync on a file makes its content, bits, time and attributes durable, and not
//     its name. So a file that was synced can be without a name after a crash, and a
//     name can lead to a file without its content.
//   - SyncDir makes the entries of that directory durable, and its own bits, and
//     with an entry that there is an inode.
//   - SyncAll makes everything durable.
//
// # What a crash does
//
// Where a process dies ([Disk.Die]), nothing is lost: what is pending stays so, and
// may still be lost by a later crash. That is what makes a program that looks at a
// file after a crash, and takes what it sees for what is on the disk, go wrong.
//
// Where the power goes ([Disk.Cut]) any part of the pending operations is on the
// medium, under these rules only:
//
//   - One change of entries is whole or not there: rename, exchange and the like
//     are atomic, as on every file system with a journal.
//   - Of changes of entries that have a name or an inode in common a later one is
//     there only if the earlier one is. So is a change in a directory only with those
//     that gave the directory its name, and a change of that name only with what was
//     changed in it before: no file system that logs what it changes brings an entry
//     back without the way that led to it. Others are there in any combination, also
//     of one directory, where the file systems in use would keep their order.
//   - Changes of one inode's bits, time and attributes keep their order. They are
//     independent of its content, of which any writes may be missing: what was to be
//     there is then zeros, or nothing at the end of the file. The last of the writes
//     may have come in half.
//   - A link's target, and the bits that a file or a directory was made with, are
//     there with its name.
//
// That is weaker than ext4, xfs or btrfs in their usual modes, which keep more of the
// order among entries, and where Sync of a new file makes its name durable as well;
// it is as weak as what POSIX promises lets a file system with a journal be. Of what
// real disks do besides, bits that turn over and sectors that cannot be read are not
// modelled.
package simdisk
