// Package arch holds the rules that keep the tree in shape, as tests: which way imports point, what a program links that
// only defines tools, how long a file may be, what every package must have and what runtime code must not do.
//
// Each rule is a function over plain data. One test applies it to the tree, another shows that it can fail.
// There is nothing here to import.
package arch
