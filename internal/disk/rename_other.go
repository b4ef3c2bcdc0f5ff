//go:build !darwin && (portable || !linux)

package disk

import "os"

// renames reports that neither Exchange nor RenameNoReplace has a one-step
// form that starts from an open directory.
func renames(*os.File) (exchange, noReplace bool) { return false, false }

func exchangeAt(*os.File, string, *os.File, string) error { return ErrUnsupported }

func moveAt(*os.File, string, *os.File, string) error { return ErrUnsupported }
