// Package sandbox runs one program where it sees only what it was granted, and
// hands over what the program changed instead of letting it change anything.
//
// # How
//
// [Start] starts a shim in new user, mount, process, message and, unless the
// network is granted, network namespaces. The shim is process 1 there. It builds
// a file system of what the program may see: the system's programs and libraries
// read-only, a private /tmp, /proc and /dev, and each granted root at its own
// path: one to read is shown as it is, one to write through an overlay, so that
// every write lands beside the root and never in it. Then one thread of the shim
// gives up all capabilities, confines itself with Landlock and seccomp, and starts
// the program; the shim's other threads keep what is needed to look at the result.
// When the program has ended everything that it left running is killed, and
// [Process.Changes] tells what lies in the overlay.
//
// # Levels
//
// What a machine can do is found by doing it. [Reached] says which layers a run
// really had. A run that would have less than [Spec.Require] is refused before the
// program starts; nothing is weakened in silence.
//
// Where user namespaces cannot be had nothing can be laid over a root. A run that
// does not require the strict level then has Landlock, the filter of system calls,
// limits and a folder of its own for temporary files, sees the host's names, and
// writes into its roots themselves ([Direct]); what is missing is told. [Probe]
// says which way a root gets, and why. Control groups are used where they are
// delegated: to bound memory, if that is asked for, and to kill where no namespace
// does.
//
// # The shim
//
// The shim is a binary that calls [Main] first thing in main: the running one,
// started again, or one that the caller names as a [Shim], such as the remit
// command. Without one there is no sandbox, level none, and [Start] says so. Its
// code is package shim; a program imports internal/sandbox/first to have it run
// before most of the program is initialised, which each start of a sandbox would
// else wait for. Programs outside of this module call Main of ctxperm/process.
package sandbox
