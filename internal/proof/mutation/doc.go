// Package mutation plants bugs: it finds the places in the source on which undo
// depends, and writes the file with one of them broken, so that somebody can look
// whether the tests notice.
//
// The kinds of places, of which the first three are found by their syntax:
//
//   - barrier: what makes something durable. The field Durable of a write, and calls
//     of Sync, SyncDir and SyncAll. Broken, nothing is made durable.
//   - token: a comparison of versions, a call of Same or same. Broken, all versions
//     are the same, or no two are.
//   - lease: what keeps others out. A call of TryLease, comparisons with a Fence, and
//     assignments to Fence and Claims. Broken, nobody is kept out.
//   - check: an if statement that refuses, or does what must not be left out, where
//     none of the kinds above is in it. Broken, its condition never holds. It exists
//     where it is tagged.
//   - order: two statements of which the first must come first. Broken, they have
//     changed places. It exists where it is tagged.
//
// Each place carries a tag, a comment on the line above its statement:
//
//	//mutant:token
//	if !now.Token().Same(w.pre) {
//
// A tag none, with its reason, says that nothing depends on it: a comparison that
// only words a report.
//
//	//mutant:none only says how it is shown
package mutation
