// Package jsonfile reads strict JSON files that people write, and says of each thing that
// is wrong with them in which line and column it stands.
//
// A file is read as package canon reads a document. What is wrong is collected, not
// returned at once, so that whoever wrote the files learns all of it in one go. Columns
// count characters from 1. No text repeats a value of the file: one may be a secret that
// somebody wrote in the wrong place.
package jsonfile
