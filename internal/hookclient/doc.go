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
// A request is one line with the protocol, the build of the client, its kind
// and the lengths of its fields, and the fields. cmd/remit/internal/hook is the
// other end.
//
//	remit/1 BUILD hook CLIENT-LENGTH PROJECT-LENGTH EVENT-LENGTH
//	remit/1 BUILD exec TOKEN-LENGTH FOLDER-LENGTH ENVIRONMENT-LENGTH   with the descriptors 0, 1 and 2
//	remit/1 BUILD settle FOLDER-LENGTH 0 0                             ends the prompts of a workspace
//
// A reply is one line and the outputs. If the resident process makes place for
// another one, or does not serve this client, the first word tells it.
//
//	reply EXIT OUTPUT-LENGTH ERROR-LENGTH
//	handover 0 0 0
//	refused 0 0 ERROR-LENGTH
//
// The first word of a request, its second word, and the lines of replies are the
// same in every protocol: builds with different ones must understand each other
// so far.
package hookclient
