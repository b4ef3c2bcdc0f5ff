//go:build !linux

package main

import (
	"os/exec"
	"testing"
)

// ordinary works only on Linux, like the sandbox.
func ordinary(*testing.T, *exec.Cmd) {}
