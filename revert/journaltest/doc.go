// Package journaltest holds the suite that every implementation of
// journal.Journal must pass: that batches are whole and in order, that fences,
// takes and claims decide as written, that queries select exactly what they
// say, that the tree's head is that of all leaves, that Fsck finds what is wrong and
// nothing else, that blobs come back as they were kept or not at all, and that all of it
// is still so after the storage was opened again.
//
// What a store does when its process is killed or its bytes are damaged is its
// own to test: only the store knows how to get there.
package journaltest
