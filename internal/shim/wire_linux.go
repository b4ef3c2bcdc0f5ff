//go:build amd64 || arm64

package shim

import (
	"encoding/binary"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// The two ends talk over a socket pair: a frame is its length in four bytes, big
// endian, and its body; descriptors ride on the length. Both ends are one binary,
// so the format has no version. The shim ends when its socket does: a parent that
// dies takes its programs along.

// maxFrame bounds what one end makes the other hold, in bytes.
const maxFrame = 64 << 20

var (
	errTorn = errors.New("a torn frame")
	errSize = errors.New("a frame that is too large")
	errBody = errors.New("a frame that says nothing")
)

// Frame is an Order or a Message.
type Frame interface {
	Pack() []byte
	Unpack(in []byte) error
}

// packer writes numbers and texts one after the other.
type packer struct{ out []byte }

func (p *packer) number(n uint64) { p.out = binary.AppendUvarint(p.out, n) }

func (p *packer) text(s string) {
	p.number(uint64(len(s)))
	p.out = append(p.out, s...)
}

func (p *packer) list(l []string) {
	p.number(uint64(len(l)))
	for _, s := range l {
		p.text(s)
	}
}

func (p *packer) flag(b bool) {
	n := uint64(0)
	if b {
		n = 1
	}
	p.number(n)
}

// unpacker reads them back. What is not there reads as nothing, and end says so.
type unpacker struct {
	in   []byte
	torn bool
}

func (u *unpacker) number() uint64 {
	n, size := binary.Uvarint(u.in)
	if size <= 0 {
		u.in, u.torn = nil, true
		return 0
	}
	u.in = u.in[size:]
	return n
}

// count is a number of things, each of which takes a byte at least.
func (u *unpacker) count() int {
	n := u.number()
	if n > uint64(len(u.in)) {
		u.in, u.torn = nil, true
		return 0
	}
	return int(n) //nolint:gosec // at most len(u.in)
}

func (u *unpacker) text() string {
	n := u.count()
	s := string(u.in[:n])
	u.in = u.in[n:]
	return s
}

func (u *unpacker) list() []string {
	n := u.count()
	if n == 0 {
		return nil
	}
	l := make([]string, 0, n)
	for range n {
		l = append(l, u.text())
	}
	return l
}

func (u *unpacker) flag() bool { return u.number() != 0 }

func (u *unpacker) end() error {
	if u.torn || len(u.in) > 0 {
		return errBody
	}
	return nil
}

// Send writes one frame to a blocking socket.
func Send(fd int, f Frame, fds ...int) error {
	body := f.Pack()
	if len(body) > maxFrame {
		return errSize
	}
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(body))) //nolint:gosec // at most maxFrame
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(fd, head[:], rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	for len(body) > 0 {
		n, err := unix.SendmsgN(fd, body, nil, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}

// Receive reads one frame of a blocking socket. io.EOF means that the other end
// is gone.
func Receive(fd int, f Frame) (fds []int, err error) {
	var head [4]byte
	rights := make([]byte, unix.CmsgSpace(64*4))
	n, rn, err := recvmsg(fd, head[:], rights)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, io.EOF
	case n < len(head): // a frame's length is written in one step
		return nil, errTorn
	}
	if fds, err = descriptors(rights[:rn]); err != nil {
		return fds, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return fds, errSize
	}
	body := make([]byte, size)
	for got := 0; got < len(body); {
		n, _, err := recvmsg(fd, body[got:], nil)
		switch {
		case err != nil:
			return fds, err
		case n == 0:
			return fds, io.ErrUnexpectedEOF
		}
		got += n
	}
	return fds, f.Unpack(body)
}

func recvmsg(fd int, p, oob []byte) (n, oobn int, err error) {
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, p, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
		if !errors.Is(err, unix.EINTR) {
			return n, oobn, err
		}
	}
}

func descriptors(rights []byte) (fds []int, err error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		some, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fds, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}
