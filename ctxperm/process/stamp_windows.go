package process

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// rawStat is what the system tells of a name.
type rawStat struct {
	Nlink uint64
	stamp fileStamp
}

// timespec is a time as stamps have it.
type timespec struct{ Sec, Nsec int64 }

// Unix returns the time in seconds and nanoseconds.
func (t timespec) Unix() (sec, nsec int64) { return t.Sec, t.Nsec }

// Nano returns the time in nanoseconds.
func (t timespec) Nano() int64 { return t.Sec*1e9 + t.Nsec }

const (
	noFollow = 0 // the flags of Go open links here
	noWait   = 0

	knowsOwners = false
)

// basicInfo is FILE_BASIC_INFO.
type basicInfo struct {
	Created, Accessed, Written, Changed int64
	Attributes                          uint32
	_                                   uint32
}

// stampOf reads the state of the name itself, not of what a link leads to. It
// needs no right to read the content.
func stampOf(path string) (fileStamp, rawStat, error) {
	is, err := rawOf(path)
	if err != nil {
		return fileStamp{}, is, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return is.stamp, is, nil
}

func rawOf(path string) (is rawStat, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return is, errors.Unwrap(err)
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return is, err
	}
	h, err := windows.CreateFile(name, windows.FILE_READ_ATTRIBUTES, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
		windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return is, err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var raw windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &raw); err != nil {
		return is, err
	}
	var times basicInfo
	if err := windows.GetFileInformationByHandleEx(h, windows.FileBasicInfo, (*byte)(unsafe.Pointer(&times)), uint32(unsafe.Sizeof(times))); err != nil {
		return is, err
	}
	s := fileStamp{
		ino: uint64(raw.FileIndexHigh)<<32 | uint64(raw.FileIndexLow), dev: uint64(raw.VolumeSerialNumber), mode: modeOf(info.Mode()),
		size: info.Size(), mtime: timeOf(times.Written), ctime: timeOf(times.Changed),
	}
	if times.Changed == 0 { // the file system does not keep it: the content is compared each time
		s.ctime = timespec{Sec: math.MaxInt32}
	}
	return rawStat{Nlink: uint64(raw.NumberOfLinks), stamp: s}, nil
}

// timeOf returns a time that the system counts in 100 ns since 1601.
func timeOf(ticks int64) timespec {
	ft := windows.Filetime{LowDateTime: uint32(ticks), HighDateTime: uint32(ticks >> 32)}
	return timespec{Sec: ft.Nanoseconds() / 1e9, Nsec: ft.Nanoseconds() % 1e9}
}

func modeOf(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	switch mode.Type() {
	case 0:
		return typeFile | bits
	case fs.ModeDir:
		return typeFolder | bits
	case fs.ModeSymlink:
		return typeLink | bits
	}
	return bits // such as a mount point, which has no copy
}

func stampFrom(is *rawStat) fileStamp { return is.stamp }

// with opens a file for writing, which the system needs to make it durable, and
// calls do. It does nothing for a folder: the system cannot make one durable.
func with(name string, do func(*os.File) error) error {
	info, err := os.Lstat(name)
	if err != nil || info.IsDir() {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}
