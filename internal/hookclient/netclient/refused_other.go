//go:build !windows && (portable || !linux || !(amd64 || arm64))

package netclient

// isRefused is false: ECONNREFUSED tells that nobody listens.
func isRefused(error) bool { return false }
