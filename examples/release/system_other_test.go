//go:build !linux

package main

import (
	"os/exec"
	"testing"
)

// ordinary is for Linux, where the sandbox is.
func ordinary(*testing.T, *exec.Cmd) {}
