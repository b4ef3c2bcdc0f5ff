//go:build windows

package disk

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const (
	nonBlocking = 0     // Windows has no FIFOs among its files
	syncsDirs   = false // Windows cannot flush a directory
)

// stat describes an open file. The caller sets the name.
func stat(file *os.File) (Info, error) {
	found, err := file.Stat()
	if err != nil {
		return Info{}, err
	}
	info := infoOf(found)
	conn, err := file.SyscallConn()
	if err != nil {
		return Info{}, fs.ErrClosed
	}
	var raw windows.ByHandleFileInformation
	var failed error
	if conn.Control(func(fd uintptr) { failed = windows.GetFileInformationByHandle(windows.Handle(fd), &raw) }) != nil {
		return Info{}, fs.ErrClosed
	}
	info.Inode = uint64(raw.FileIndexHigh)<<32 | uint64(raw.FileIndexLow)
	info.Device, info.Links = uint64(raw.VolumeSerialNumber), uint64(raw.NumberOfLinks)
	return info, failed
}

// complete reads the numbers of an open file, which the name alone does not
// tell. It does not open links and other types, which keep none.
func (r *portableRoot) complete(name string, found fs.FileInfo) (Info, error) {
	info := infoOf(found)
	if info.Type != TypeFile && info.Type != TypeDir {
		return info, nil
	}
	file, err := r.root.Open(name)
	if err != nil {
		return Info{}, rootError(err)
	}
	defer file.Close()
	return stat(file)
}

func infoOf(found fs.FileInfo) Info {
	return Info{
		Type:  typeOf(found.Mode()),
		Perm:  found.Mode() & PermMask,
		Size:  found.Size(),
		Mtime: found.ModTime().UTC(),
	}
}
