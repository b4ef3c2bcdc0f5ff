//go:build !linux

package main

// spawns measures nothing: there is no sandbox on this system.
func spawns(clock) ([]row, error) { return nil, nil }

// costs measures nothing either.
func costs(clock) ([]row, error) { return nil, nil }

// trees measures nothing either.
func trees(clock) ([]row, error) { return nil, nil }
