// Package process is the handle through which a tool runs a program.
//
// # How
//
// [Run] starts one program in the sandbox, by its argument vector and without a
// shell. The program sees the roots that its call may read, without masked
// files. It writes beside the roots instead of into them. The tool continues
// after the program, and every process that it started, has ended.
//
// When the tool has returned, the program's changes are decided like those of
// any other handle. The policy decides each path with purpose apply. The
// runtime records all changes, and only then applies each, with the
// check-and-swap that reverts also use. If one path is denied, or another
// process touched one meanwhile, nothing is applied.
//
// So a revert needs no support from the program. A program that is killed,
// exceeds its timeout or is denied has no effect at all. The tool judges a
// nonzero exit code: the changes are applied regardless.
//
// # What a program sees
//
// A program sees the system's programs and libraries, a private /tmp, /proc and
// /dev, and each root at its path. It sees nothing else of the machine. It has
// no network, unless the command requests it and the access "connect
// exec://program" is granted. It inherits no descriptors, and only the
// variables of the driver and the command.
//
// # What the runtime applies
//
// The runtime applies content, owner, group, permission bits, access control
// lists, extended attributes, symbolic links and times of files. It also
// applies hard links among new files. A rename is a deletion and a creation.
// Files of a program lose setuid, setgid and capabilities. A folder keeps
// setgid, which only passes its group on. A write to one name of a file with
// several names separates it from the others. The runtime skips sockets and
// pipes that a program leaves behind, and reports them. If one replaces a file,
// the runtime refuses all changes. It does not keep the times of directories.
//
// # Programs outside the sandbox
//
// A program outside the sandbox can act for a call, such as an MCP server. A
// [Snapshotter] copies its folders before the call. The differences after the
// call become the call's changes, which have already happened. They include
// concurrent changes by other processes, which the runtime cannot distinguish.
//
// # Levels
//
// A driver demands a level of sandbox, by default Strict. The policy can demand
// Strict with require "sandbox". If the machine offers less, the call is denied
// and nothing runs. The program that embeds this package calls [Main] first in
// main, or names another program that does. Without one there is no sandbox.
package process
