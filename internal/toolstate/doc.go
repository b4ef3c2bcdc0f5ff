// Package toolstate stores the state of stateful tools between the calls of a
// session. A state is a resource like any other, with versions, claims and
// changes. It is part of the journal itself, so it changes exactly when the
// record of a call's end is stored.
package toolstate
