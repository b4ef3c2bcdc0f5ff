// Package callstate holds the live state of one call between its permit and its end:
// what was granted, the recorder of its changes, the operations in flight. Tool
// contexts and permits are thin values around it; since the package is internal
// nothing outside this module can make one.
package callstate
