//go:build unix && (portable || !linux)

package process

// heldByOther is false: no program has a file for itself here.
func heldByOther(error) bool { return false }

// notFolder is false: another error tells it here.
func notFolder(error) bool { return false }
