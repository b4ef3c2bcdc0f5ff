// Package compose makes one tool of several: one after the other, side by side, one in the
// place of another, or one of two.
//
// What comes out is a tool like any other, and a call of it is one call: one decision before
// it, one record, one result, one undo. Its needs are those of its parts together; each part
// is asked for, exactly, before it runs, and reaches no further than it may alone. It is as
// confined as its weakest part, its class is the worst of theirs, and it is verified and taken
// back part by part.
package compose
