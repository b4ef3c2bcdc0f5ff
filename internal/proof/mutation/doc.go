// Package mutation plants bugs. It finds the places in the source on which
// revert depends, and writes the file with one of them broken, to check whether
// the tests notice.
//
// The kinds of places, of which the first three are found by their syntax:
//
//   - barrier: code that makes something durable. The field Durable of a write,
//     and calls
//     of Sync, SyncDir and SyncAll. Broken, nothing is made durable.
//   - token: a comparison of versions, a call of Same or same. Broken, all
//     versions
//     are the same, or no two are.
//   - lease: exclusion of others. A call of TryLease, comparisons with a Fence,
//     and
//     assignments to Fence and Claims. Broken, it excludes nobody else.
//   - check: an if statement that refuses, or does a required action, and that
//     contains none of the kinds above. Broken, its condition never holds. It exists
//     if it is tagged.
//   - order: two statements of which the first must come first. Broken, they
//     have
//     changed places. It exists if it is tagged.
//
// Each place carries a tag, a comment on the line above its statement:
//
//	//mutant:token
//	if !now.Token().Same(w.pre) {
//
// A tag none, with its reason, says that nothing depends on it, such as a
// comparison that only words a report.
//
//	//mutant:none only says how it is shown
package mutation
