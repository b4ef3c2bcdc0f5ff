// Package binding computes the parts of an entry that refer to a call: the
// resources that name arguments, and the templates of other calls.
package binding
