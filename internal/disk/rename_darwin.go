package disk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// renames reports whether Exchange and RenameNoReplace are atomic. APFS
// supports them; other file systems promise nothing.
func renames(root *os.File) (exchange, noReplace bool) {
	var raw unix.Statfs_t
	if unix.Fstatfs(int(root.Fd()), &raw) != nil {
		return false, false
	}
	apfs := unix.ByteSliceToString(raw.Fstypename[:]) == "apfs"
	return apfs, apfs
}

func exchangeAt(fromDir *os.File, fromBase string, toDir *os.File, toBase string) error {
	return renameAt(fromDir, fromBase, toDir, toBase, unix.RENAME_SWAP)
}

func moveAt(fromDir *os.File, fromBase string, toDir *os.File, toBase string) error {
	return renameAt(fromDir, fromBase, toDir, toBase, unix.RENAME_EXCL)
}

func renameAt(fromDir *os.File, fromBase string, toDir *os.File, toBase string, flag uint32) error {
	err := unix.RenameatxNp(int(fromDir.Fd()), fromBase, int(toDir.Fd()), toBase, flag)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EXDEV):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
