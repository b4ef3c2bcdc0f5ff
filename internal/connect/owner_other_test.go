//go:build !unix

package connect_test

import "os"

func ownerOf(os.FileInfo) [2]uint32 { return [2]uint32{} }
