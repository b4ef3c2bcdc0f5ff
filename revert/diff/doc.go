// Package diff shows what a transaction or a call did to resources: what was
// there before and after, and for text the lines that differ.
//
// It reads the journal and the world and writes neither. What was there before a
// change is kept for its undo; what came after is shown from the world where it is
// still there, or from what later changes kept when they displaced it, and is else
// said to be gone.
package diff
