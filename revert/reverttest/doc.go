// Package reverttest is the fault kit for authors of tools: it runs a tool into
// whatever can go wrong, and grades what can be relied on when a call of it is taken
// back.
//
// An author gives a world that can be made afresh, what is in it, how somebody else
// would change it, and inputs to try. [Grade] then runs the tool's Execute, Verify and
// Revert over such worlds, with the real line of a call, recovery, undo and redo, on a
// journal that loses what was not synced:
//
//   - the process dies, or the power goes, at each write of the call, of its undo and of
//     the recovery that follows, and again in that;
//   - requests and answers of what the tool acts on are lost, arrive after all is over, or
//     are answered with yes while nothing has happened;
//   - Revert fails before it began or after it was done, and is called again; Execute is
//     delivered twice, where the tool says that this is harmless; a revert is asked for twice;
//   - somebody else changes what the call left: after it, and while nobody knows yet what
//     it did;
//   - the caller gives up.
//
// What the tool does outside of handles is seen by the [Wire] that the world's fakes go
// through; what handles of files do is seen by itself, on a simulated disk ([TestEnv.Files]).
//
// # What is required
//
// Whatever was recorded or said is so: a call that is recorded as done is there, once and
// whole; one that failed left nothing; where everything is said to be taken back the world
// is as it was before; nothing that somebody else left is lost. And as little as possible
// is left to a person.
//
// # The grades
//
//   - read_only: it declares itself pure, and nothing ever changed.
//   - crash_undoable: it is reversible, and from wherever a fault left it the world came
//     back exactly, by itself.
//   - compensable: nothing was lost, doubled or said to be undone that was not; but traces
//     remain, or some fault left the call unknown, which is said, and is for a person to end.
//   - not_undoable: it declares no way back, or something of the above was broken.
//
// Each comes with the first story that speaks against a better one, which can be run
// again by its name. A grade is of one declaration, by its digest, and is kept in a file
// beside the tool ([Keep], tool.Tool.Graded); policies read it as input.tool.grade. It is
// what was found out and no proof: of faults that no input of the author's meets, and of
// effects that no snapshot shows, it knows nothing.
package reverttest
