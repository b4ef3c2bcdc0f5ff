// Package files is the handle through which a tool reads and changes files
// below a named root. It also contains the Scheme that reverts such changes.
//
// # Order
//
// Every change follows one order, "=>" being a barrier. A step that fails ends
// it and withdraws the steps before it:
//
//	authorize; read what is there and keep its content; RecordChange(pre, post, inverse)
//	=> prepare the new file under a draft name in the same directory, and sync it
//	   rename the draft to the stage name: from here on it is known to be complete
//	   exchange stage and target in one step
//	   does a program still write to the displaced file? is it the version that was read?
//	   yes: remove it; no: exchange back, and fail with ErrConflict
//	=> sync the directory
//
// A new file is renamed from draft to target without replacing anything. A file
// to be deleted is renamed to the stage name, checked there, and only then
// removed. So a change never overwrites a byte that another process wrote in
// between. A process that dies at any point leaves a state that Scheme.Settle
// can complete; the comment of settle has the table of cases.
//
// # Looks
//
// A change walks to the folder of its name twice: to read before the record,
// and to perform. Meanwhile the folder stays open. If another process moves it,
// the change moves with it, as if it came first. In the folder, each look
// guards a race or makes a record:
//
//	describe the target; open it; compare           a link, a device or another file in its place
//	take a lease, before the content is read        a program that writes to it
//	read content and attributes; describe again     a writer or a replacement during the read
//	all of these again on the displaced file        changes between the record and the exchange
//	describe the draft, while it is open            which file is ours, if the exchange is reversed
//	describe the folder                             its time, for the record
//
// A verification reads the file once, with the comparisons. It does not trust
// the write: another process can have written since.
//
// # Many entries at once
//
// Move, Copy, DeleteAll and MkdirAll change several entries. They authorize
// each of them, and listing each directory, before any effect. If one access is
// denied, they refuse the whole operation. They record all changes in one step
// before the first effect, and sync each directory once after the last. So the
// cost grows with the changed data.
//
// If there are many new files, the operation prepares them in waves. No entry
// of a wave makes the directory of another. One sync of the whole file system
// makes the drafts durable before the first exchange of the wave. At most 64
// MiB lie beside their targets at a time. Then every entry follows the order
// above on its own. A crash in the middle leaves some entries changed and some
// not; their versions tell which. An error in the middle leaves the earlier
// changes, which are recorded. The revert of a failed call includes them. The
// changes of a program, and reverts, follow the same order.
//
// Folders that stay folders are changed in an order that never widens access. A
// folder that denies others something gets its version before all other
// changes. A folder that gives them something gets it after everything below it
// is durable. A folder that does both has a held version in between: it admits
// only those whom both versions admit. If content below could not be restored
// and would be exposed, the folder stays closed, and the report names both.
//
// A move deletes one name and writes another, for a directory entry by entry.
// One rename is cheaper, but gives all entries one version, one permission and
// one inverse. A moved or copied file is a new file, without hard links, setuid
// and setgid.
//
// The bits of a directory are set in place, because its entries cannot move
// into a new one. A concurrent change of the bits by another process is lost.
//
// # What a revert restores
//
// A revert restores type, owner, group, permission bits, access control lists,
// extended attributes, content, link target and the time of a file's last
// change. Blocks of zeros use no space. Attributes are those of
// [disk.CheckXattr]. They exclude labels and checksums that the system makes
// for each file, and those of symbolic links. The handle refuses to change what
// this process could not make again, such as a file of another owner for an
// ordinary user. Meanwhile no user has more access than before: only the owner
// can access a new version until it is complete.
//
// A name that shared its file with other names in the root is restored as a
// name of that file, if one of them still exists unchanged. To find them, an
// operation that removes a hard link walks the root once. Hard links with names
// outside of the root (which the report lists) and access times are not
// restored. The time of a folder is restored if it is still the one that the
// call left. A file with several hard links is not written. A file whose
// content is replaced loses setuid, setgid and capabilities, as on a write by
// the system.
//
// A new file gets the owner that it has when a program makes it: the group of a
// setgid folder, and the default list of its folder.
//
// # Names
//
// A path is clean, relative and slash-separated. Its elements are bytes, which
// need not be text. It passes through no symbolic link, because permission is
// for a path, and a link leads to another one. On Linux the kernel refuses
// links during the walk. So a process that replaces a directory by a link after
// the check cannot redirect the operation. Before Linux 5.6 and on other
// systems, such a link is followed below the root.
//
// The handle makes no link that leads out of the root. Names that begin with
// StagePrefix are reserved: operations refuse them and do not list them. If a
// version of another process can neither keep its name nor be removed, it is
// moved beside it, to "name.remit-saved-id".
//
// # Weaker file systems
//
// If exchange is not one step (see Features), a file is replaced in three
// steps: check, removal and write. A change by another process between check
// and removal is lost. If the system cannot tell which programs have a file
// open, a writer that keeps it open writes into a file without a name.
package files
