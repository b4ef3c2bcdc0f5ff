//go:build !linux

package sqlite

// spaceProblem is not available on this system.
func spaceProblem(string) string { return "" }
