// Package schema defines the form of a tool's input and output, and describes
// problems of a value in words for a model.
//
// Schemas are JSON Schema, draft 2020-12 only. A schema is data from the author
// of the tool, which may be an unknown server. So compiling one does no input
// or output. The compiler rejects a schema that refers to anything outside
// itself, uses another draft, refers to itself without end, or is too large.
// Validation is bounded too: some schemas take exponential time, so the work is
// counted before it is done.
//
// Numbers are compared as exact decimals. "format" is an annotation and never
// asserted: the draft leaves it open, validators disagree on most formats, and
// a check that others do not make rejects correct calls. "pattern" takes Go's
// regular expressions, which run in linear time. An expression with look-ahead
// or back references is rejected when the schema is compiled.
//
// A member whose name differs from a declared one only in case is rejected
// wherever the declared one is, even if the schema is open to further members:
// two readers must not find different arguments in one document.
//
// A message names the argument, its type and the valid values. It never repeats
// a value.
package schema
