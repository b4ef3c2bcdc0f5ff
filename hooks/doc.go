// Package hooks decides, watches and reverts what a coding agent does with its
// own tools, such as its shell and its editor.
//
// A client of this package is a coding agent that runs a program at certain
// moments, a hook: when a person gives it a prompt, before and after each use
// of a tool, and when it stops. The package translates these events into calls
// of a runtime:
//
//   - A prompt is a transaction, which commits when the agent stops.
//   - The use of a tool is a call. The policy decides it before the client runs
//     its tool, and the journal has it before the client gets the answer.
//   - A shell command runs in the sandbox instead (client_shell), or the client
//     runs it while the workspace is observed (client_shell_observed). The
//     policy chooses: the package takes the first of the two that the policy
//     does not deny.
//   - Files that a use names are saved before the client changes them.
//
// Server has the sessions of all clients. It is safe for concurrent use.
package hooks
