// Package files is the handle through which a tool reads and changes files
// below a named root, and the Scheme that takes such changes back.
//
// # Order
//
// Every change follows one order, "=>" being a barrier; a step that fails ends
// it, and whatever was begun is withdrawn:
//
//	authorize; read what is there and keep its content; Intend(pre, post, inverse)
//	=> prepare the new file under a draft name in the same directory, and sync it
//	   rename the draft to the stage name: from here on it is known to be complete
//	   exchange stage and target in one step
//	   does somebody still write to what was displaced? is it the version that was read?
//	   yes: remove it; no: exchange back, and fail with ErrConflict
//	=> sync the directory
//
// A new file goes from draft to target without replacing anything, and a file to
// be deleted goes to the stage name, is looked at there, and only then removed.
// So no byte that somebody else wrote in between is ever overwritten, and a
// process that dies at any point leaves what Scheme.Settle can put in order; the
// table of cases stands at settle.
//
// # Many entries at once
//
// Move, Copy, DeleteAll and MkdirAll change several entries. They ask for each of
// them, and for listing each directory, before anything is done, and refuse whole
// when one is denied. All changes are recorded in one step before the first
// effect, and each directory is synced once after the last, so that the cost
// grows with what changed. Where there are many, their new files are prepared in
// waves, none of which makes the directory of another of its entries, and synced
// by one step for the whole file system before the first of a wave is exchanged;
// at most 64 MiB lie beside their targets at a time. Then every entry goes the
// way above, on its own: a death in the middle leaves some changed and some not,
// which their versions tell. An error in the middle leaves what came before it,
// recorded; a call that fails is taken back with it. What a program changed, and
// what takes all of this back, goes the same way.
//
// Folders that stay folders are changed in the order that lets nobody in meanwhile. A folder that
// denies others something gets its version before everything else changes. A folder that gives
// them something gets it after all below it is durable. A folder that does both is held between:
// it lets in those alone whom both versions let in. If something below does not come back and
// would be laid open, the folder stays closed, and the report names both.
//
// A move is the deletion of one name and the writing of another, for a directory
// entry by entry: one rename would be cheaper, but have one version, one
// permission and one way back for all that is in it. What is moved or copied is a
// new file: hard links, and setuid and setgid, do not go along.
//
// The bits of a directory are set in place, since its entries cannot follow it
// into a new one. What somebody else does to the bits at that moment is lost.
//
// # What is kept
//
// Type, owner, group, permission bits, access control lists, extended attributes, content,
// link target and the time of a file's last change come back, and blocks of zeros take no
// room. Attributes are those of [disk.CheckXattr]: labels and checksums that the system
// makes for each file are not among them, nor are those of symbolic links. What this process
// could not make again, such as a file of another owner for an ordinary user, it refuses
// to touch. Nobody has more access than before meanwhile: a new version is its owner's
// alone until it is complete. A name that shared
// its file with others of the root comes back as a name of that file, as long as one of
// them is there and as it was; to know of them, whatever takes a hard link away walks
// the root once. Hard links with names outside of the root (which the report
// says), access times and the times of directories do not come back. A file with several hard links is not written,
// and setuid, setgid and capabilities are dropped from a file whose content is replaced, as
// the system itself does on a write.
//
// What is new belongs to whom it would if a program had made it: to the group of a folder
// that is setgid, with the list that the folder has for what is made in it.
//
// # Names
//
// A path is clean, relative and slash-separated; its elements are bytes, which
// need not be text. It passes through no symbolic link: permission was given for
// a path, and a link would lead to another one. On Linux the kernel refuses them
// while it walks, so that whoever replaces a directory by a link between look and
// use leads nobody elsewhere; where it cannot (before 5.6, other systems), such a
// link is followed below the root.
// No link is made that would lead out of the root. Names that begin with
// StagePrefix are reserved; they are refused and not listed. When a version of
// somebody else can stay neither under its name nor be thrown away, it is moved
// beside it, to "name.remit-saved-id".
//
// # Weaker file systems
//
// Where exchange is not one step (Features says so), a file is replaced by
// looking at it, removing it and writing it again: a change that somebody makes
// between look and removal is lost. Where the system cannot tell who has a file
// open, a writer that keeps it open writes into a file without a name.
package files
