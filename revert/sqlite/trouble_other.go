//go:build !linux

package sqlite

// lacks is not available on this system.
func lacks(string) string { return "" }
