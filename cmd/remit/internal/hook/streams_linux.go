package hook

import (
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// reader reads a connection, and keeps the descriptors that come with the data.
type reader struct {
	conn  *net.UnixConn
	files []*os.File
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	rights := make([]byte, unix.CmsgSpace(3*4))
	n, oob, _, _, err := r.conn.ReadMsgUnix(p, rights)
	if oob > 0 {
		r.keep(rights[:oob])
	}
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

func (r *reader) keep(rights []byte) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			r.files = append(r.files, os.NewFile(uintptr(fd), "stream"))
		}
	}
}

func (r *reader) takeFiles() []*os.File {
	files := r.files
	r.files = nil
	return files
}

func (r *reader) closeFiles() {
	for _, f := range r.takeFiles() {
		_ = f.Close()
	}
}
