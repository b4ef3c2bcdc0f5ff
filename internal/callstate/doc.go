// Package callstate holds the live state of one call between its permit and its
// end: granted accesses, the recorder of its changes, and the operations in
// flight. Tool contexts and permits are thin values around it. Because the
// package is internal, code outside this module cannot create one.
package callstate
