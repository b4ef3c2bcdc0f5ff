//go:build !linux

package hook

import (
	"net"
	"os"
)

// reader reads a connection. Descriptors do not come with the data here: they
// are those of sandboxed commands.
type reader struct{ conn *net.UnixConn }

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) { return r.conn.Read(p) }

func (*reader) takeFiles() []*os.File { return nil }

func (*reader) closeFiles() {}
