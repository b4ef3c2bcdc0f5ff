// Package script has the verbs that run scripts of calls: run, and resume for
// what a script left.
package script
