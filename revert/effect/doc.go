// Package effect describes the effects of a call as data: the class of an
// effect, the change of one resource with its inverse, the step that reverts
// changes, and its outcome.
//
// The package knows no resource. The scheme that a change names (revert.Scheme)
// defines its version tokens and its inverse.
package effect
