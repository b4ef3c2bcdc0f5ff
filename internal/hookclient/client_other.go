//go:build portable || !linux || !(amd64 || arm64)

package hookclient

// Main does nothing: here the command itself is the client; see netclient.
func Main() {}
