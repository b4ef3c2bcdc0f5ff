// Package kind names the kinds of record on a journal. Package record defines
// the body of each kind, in the type of the same name.
package kind
