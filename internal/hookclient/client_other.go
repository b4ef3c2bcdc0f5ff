//go:build !linux || !(amd64 || arm64)

package hookclient

// Main does nothing: here the command itself is the client.
func Main() {}

// Run handles no command line here.
func Run([]string) (code int, handled bool) { return 0, false }

// Settle does nothing: there is no resident process here.
func Settle(string, string) error { return nil }
