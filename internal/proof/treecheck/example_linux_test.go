package treecheck_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// A test describes a tree, lets the code under test change and restore the tree,
// and then requires that no difference is left.
func Example() {
	dir, err := os.MkdirTemp("", "treecheck")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder of the system's temporary ones
	name := filepath.Join(dir, "script")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	before, err := treecheck.Capture(dir)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Chmod(name, 0o700); err != nil {
		log.Fatal(err)
	}
	after, err := treecheck.Capture(dir)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range treecheck.Compare(before, after) {
		fmt.Println(d)
	}
	// Output: "script": mode: want 0600, got 0700
}
