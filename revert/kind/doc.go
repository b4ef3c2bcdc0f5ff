// Package kind names the kinds of record on a journal. What a record of each
// kind says is in package record, in the type of the same name.
package kind
