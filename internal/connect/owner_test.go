//go:build unix

package connect_test

import (
	"os"
	"syscall"
)

func ownerOf(info os.FileInfo) [2]uint32 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		panic("no owner is known of " + info.Name())
	}
	return [2]uint32{s.Uid, s.Gid}
}
