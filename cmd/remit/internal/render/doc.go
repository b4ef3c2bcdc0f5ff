// Package render writes calls, their changes, decisions and the output of
// programs for people, the same way for all verbs.
package render
