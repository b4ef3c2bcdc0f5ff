// Package jsonfile reads strict JSON files that people write, and reports each
// problem with its line and column.
//
// Package canon parses the file. The reader collects problems instead of
// returning the first one, so the author of the files sees all of them at once.
// Columns count characters from 1. No text repeats a value of the file: it may
// be a secret in the wrong place.
package jsonfile
