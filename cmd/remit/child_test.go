package main

import (
	"os"
	"sync"

	"github.com/remit-dev/remit/internal/sample"
)

// self is the program that is killed, hundreds of times: these tests.
var self = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "remit-child-")
	if err != nil {
		panic(err)
	}
	leftBehind = append(leftBehind, dir)
	program, err := sample.Program(dir)
	if err != nil {
		panic(err)
	}
	return program
})
