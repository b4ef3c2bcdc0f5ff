//go:build !linux

package sqlite

// lacks is not known here.
func lacks(string) string { return "" }
