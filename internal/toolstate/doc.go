// Package toolstate is what stateful tools hold between the calls of a session. It is a
// resource like any other, with versions, claims and changes; its world is the journal
// itself, so that it changes exactly when the record of a call's end is there.
package toolstate
