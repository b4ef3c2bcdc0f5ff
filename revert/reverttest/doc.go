// Package reverttest is the fault kit for authors of tools. It runs a tool with
// every fault that it can cause, and grades how reliably its calls can be
// reverted.
//
// An author supplies a test environment that can be created again, its content,
// the changes of another actor, and inputs. [Grade] then runs the tool's
// Execute, Verify and Revert in such environments. It uses the real call
// pipeline, recovery, revert and redo, on a journal that loses unsynced
// records. The faults:
//
//   - The process dies, or the power fails, at each write of the call, of its
//     revert
//     and of the recovery that follows, and again in these.
//   - Requests and responses of the tool are lost, arrive after the end, or
//     report
//     success without an effect.
//   - Revert fails before or after its effect, and is called again. Execute
//     runs
//     twice, if the tool declares that harmless. A revert is requested twice.
//   - Another actor changes what the call left: after the call, and while its
//     outcome
//     is unknown.
//   - The caller cancels.
//
// The [Wire] that the fakes of an environment use observes the tool's effects
// outside handles. The kit observes handles of files itself, on a simulated
// disk ([TestEnv.Files]).
//
// # What is required
//
// Everything that is recorded or reported must be true. A call that is recorded
// as done is present, once and complete. A failed call left nothing. If
// everything is reported reverted, the environment is as before. No change of
// another actor is lost. And as little as possible needs a person.
//
// # The grades
//
//   - read_only: it declares itself pure, and nothing ever changed.
//   - crash_undoable: it is reversible, and after every fault the environment
//     was
//     restored exactly, without a person.
//   - compensable: nothing was lost, doubled or falsely reported reverted. But
//     traces
//     remain, or a fault left the call unknown, which is reported, for a person to
//     resolve.
//   - not_undoable: it declares no revert, or violated a requirement.
//
// Each grade has the first run that prevents a better one, which its name
// repeats. A grade belongs to one declaration, by its digest. A file beside the
// tool stores it ([SaveGrades], tool.Tool.Graded), and policies read it as
// input.tool.grade. It is a test result and no proof: it does not cover faults
// that the author's inputs never reach, or effects that no snapshot shows.
package reverttest
