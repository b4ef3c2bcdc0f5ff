//go:build race

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// self is the program that is killed: these tests, built without the race detector.
// They start it hundreds of times, and what it looks for has nothing to do with being
// killed. Where it cannot be built the tests are their own child.
var self = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "remit-child-")
	if err != nil {
		return os.Args[0]
	}
	leftBehind = append(leftBehind, dir)
	bin := filepath.Join(dir, "child.test")
	if out, err := exec.Command("go", "test", "-c", "-o", bin, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "the tests are their own child: go test -c: %v: %s\n", err, out)
		return os.Args[0]
	}
	return bin
})
