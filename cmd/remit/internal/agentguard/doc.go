// Package agentguard restricts the command if a coding agent started it.
//
// The resident process writes a record of the process of each client whose
// hooks it answers. Check compares the process of the command with these
// records. It protects against mistakes and injected text; the threat model
// lists what code of the same user can still do.
package agentguard
