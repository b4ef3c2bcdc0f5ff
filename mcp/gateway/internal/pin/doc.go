// Package pin stores the definitions that an operator accepted, and puts others
// in quarantine.
package pin
