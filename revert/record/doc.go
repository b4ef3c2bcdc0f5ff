// Package record holds what a journal's records say: a body for each kind, and
// the entry that a record is sealed into.
//
// The fields of the bodies are the format: other programs read them, so a field
// is never given another meaning (docs/reference/records.md).
package record
