//go:build unix

package connect_test

import (
	"os"
	"syscall"
)

func ownerOf(info os.FileInfo) [2]uint32 {
	s := info.Sys().(*syscall.Stat_t)
	return [2]uint32{s.Uid, s.Gid}
}
