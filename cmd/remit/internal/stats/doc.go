// Package stats counts what became of the calls of each tool, by declaration: another
// digest of the same name is another row, so that what a changed description or a narrower
// schema did to a tool can be seen. It reads a journal, one transaction at a time, and
// keeps for each declaration some counts and at most 4096 times; where there are more, the
// times go into a histogram with 64 steps for each doubling.
package stats
