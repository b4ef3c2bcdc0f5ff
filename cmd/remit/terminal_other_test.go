//go:build !linux

package main

// onTerminal is a command for Linux.
func onTerminal() {}
