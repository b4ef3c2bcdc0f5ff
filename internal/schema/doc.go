// Package schema says what a tool's input and output may look like, and tells a model in words what is wrong with them.
//
// Schemas are JSON Schema, draft 2020-12 and nothing else. A schema is data from whoever wrote the tool, which may be a server
// nobody here knows, so compiling one does no input or output: it is refused when it refers to anything outside itself, when
// it uses another draft, when it refers to itself without end, and when it is too large. Judging a value is bounded too:
// schemas exist that take exponential time, so the work is counted before it is done.
//
// Numbers are compared as exact decimals. "format" is an annotation and never asserted: the draft leaves it open, validators
// disagree on most formats, and a check that others don't make refuses calls that are right. "pattern" takes Go's regular
// expressions, which run in linear time; one that needs look-ahead or back references is refused when the schema is compiled.
//
// A member whose name differs from a declared one only in case is refused wherever the declared one is, also when the schema
// is open to further members: two readers must not find different arguments in one document.
//
// A message names the argument, the type that is there and what is valid. It never repeats a value.
package schema
