// Package watch has the verb watch: what calls do now, in the terminal of a
// person, or as lines for a program.
package watch
