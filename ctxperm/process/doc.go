// Package process is the handle through which a tool runs a program.
//
// # How
//
// [Run] starts one program, by its argument vector and without a shell, in the
// sandbox: it sees the roots that its call may read, less what the policy masks,
// and writes beside them instead of into them. When it has ended, and with it all
// that it started, the tool goes on; when the tool has returned, what the program
// wrote is a set of changes like those of any other handle: each path is decided
// with purpose apply, all of them are recorded, and only then are they made, each
// by the check-and-swap that undo uses too. One path that is denied, or that
// somebody else touched meanwhile, and nothing of it is applied.
//
// So a program needs not know of remit to be taken back, and one that is killed,
// runs out of time or is refused has had no effect at all. An exit code that is not
// zero is the tool's to judge: what the program wrote is applied all the same.
//
// # What is seen
//
// The system's programs and libraries, a private /tmp, /proc and /dev, and each root
// at its own place. Nothing else of the machine, no network unless the command says
// so and the access "connect exec://program" is granted, no descriptors, no variables
// but those of the driver and the command.
//
// # What is changed
//
// Content, owner, group, permission bits, access control lists, extended attributes, symbolic
// links, times of files and hard links among what the program made. A rename is a deletion and a creation. The
// bits setuid and setgid of files, and capabilities, are dropped from what a program made. A folder
// keeps setgid, by which it only passes its group on. A file with several names of which the program
// wrote one is separated from the others. Sockets and pipes that a program leaves
// behind are left out, and said so; where one takes the place of a file, all is
// refused. Directories' times are not kept.
//
// # Programs that nobody holds
//
// Where somebody acts for a call outside the sandbox, such as a server that somebody else runs, a [Keep] has a copy of the folders
// that it works in from before the call; what differs after it becomes the call's changes, which have happened by then. What
// anybody else did there meanwhile is among them: nothing tells it apart.
//
// # Levels
//
// A driver demands a level of sandbox, Strict unless it says otherwise, and the
// policy can demand Strict with require "sandbox". Where less can be had the call is
// refused and nothing runs. The program that embeds this package calls [Main] first
// thing in main, or names another that does: without one there is no sandbox.
package process
