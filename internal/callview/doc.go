// Package callview prepares recorded calls for people: their status, what the
// policy decided about them, and their arguments without sensitive values. The
// command and the console show the same.
package callview
