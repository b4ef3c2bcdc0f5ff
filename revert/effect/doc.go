// Package effect describes what a call does to the world, as data: the class of
// an effect, the change of one resource from one version to another with the way
// back, the step that takes changes back, and what became of it.
//
// It knows no resource. What a version looks like and how one goes back is known
// to the scheme that a change names (revert.Scheme).
package effect
