// Package hookclient is the client of the resident process that decides for
// coding agents. A coding agent starts it for each of its events, so it starts
// before the packages that it does not need are initialized: it imports none
// that needs them, as package internal/shim does.
//
// Main handles two command lines, and returns for every other one, or if no
// resident process listens:
//
//	remit hook CLIENT                    one event on standard input
//	remit exec --call TOKEN -- COMMAND   shows a sandboxed command
//
// A request is one line with its kind and the lengths of its fields, and the
// fields. Package hooks/socket is the other end.
//
//	hook CLIENT-LENGTH PROJECT-LENGTH EVENT-LENGTH
//	exec TOKEN-LENGTH FOLDER-LENGTH ENVIRONMENT-LENGTH   with the descriptors 0, 1 and 2
//	settle FOLDER-LENGTH 0 0                             ends the prompts of a workspace
//	reply EXIT OUTPUT-LENGTH ERROR-LENGTH
package hookclient
