//go:build !darwin && (portable || !linux)

package disk

import "os"

// renames reports that neither Exchange nor RenameNoReplace is atomic from an
// open directory here.
func renames(*os.File) (exchange, noReplace bool) { return false, false }

func exchangeAt(*os.File, string, *os.File, string) error { return ErrUnsupported }

func moveAt(*os.File, string, *os.File, string) error { return ErrUnsupported }
