// Package journaltest holds the suite that every implementation of
// journal.Journal must pass. It checks that
//
//   - batches are complete and in order,
//   - fences, owner changes and claims decide as documented,
//   - queries select exactly the requested entries,
//   - the tree's head covers all leaves,
//   - Fsck finds every defect and nothing else,
//   - blobs are returned as they were stored or not at all,
//   - all of this still holds after the storage was opened again.
//
// A store must test itself what happens when its process is killed or its bytes
// are damaged, because only the store can cause that.
package journaltest
