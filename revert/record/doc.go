// Package record defines the content of a journal's records: the kinds of
// record, a body for each kind, and the entry that seals a record. The body of
// a kind is the type of the same name.
//
// The fields of the bodies are the format. Other programs read them, so a field
// never changes its meaning (docs/reference/records.md).
package record
