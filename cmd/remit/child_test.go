//go:build !race

package main

import "os"

// self is the program that is killed: these tests.
func self() string { return os.Args[0] }
