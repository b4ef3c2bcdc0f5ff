// Package linemerge merges two versions of a text by lines, against the version
// that both come from.
//
// It knows no encoding: a line is the bytes up to and including a line feed, so
// carriage returns, invalid UTF-8 and a missing last line feed stay as they are.
package linemerge
