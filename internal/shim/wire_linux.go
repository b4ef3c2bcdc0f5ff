//go:build amd64 || arm64

package shim

import (
	"errors"
	"io"
	"syscall"
)

// Both ends communicate over a socket pair. A frame is its length in four
// bytes, big endian, and its body. Descriptors are attached to the length. Both
// ends are one binary, so the format has no version. The shim ends when its
// socket closes, so a parent that dies ends its programs.

// maxFrame bounds the bytes that one end makes the other store.
const maxFrame = 64 << 20

var (
	errTorn = errors.New("a torn frame")
	errSize = errors.New("a frame that is too large")
	errBody = errors.New("a frame that says nothing")
)

// Frame is a StartRequest or a Message.
type Frame interface {
	Pack() []byte
	Unpack(in []byte) error
}

// packer encodes numbers and texts in sequence.
type packer struct{ out []byte }

// number encodes seven bits per byte, the low ones first. The top bit is set in
// every byte but the last.
func (p *packer) number(n uint64) {
	for ; n >= 0x80; n >>= 7 {
		p.out = append(p.out, byte(n)|0x80)
	}
	p.out = append(p.out, byte(n))
}

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

// unpacker decodes them. Missing data decodes as zero values, and end returns
// the error.
type unpacker struct {
	in   []byte
	torn bool
}

func (u *unpacker) number() uint64 {
	var n uint64
	for i, b := range u.in {
		if i == 9 && b > 1 || i > 0 && b == 0 { // more than 64 bits, or not the canonical encoding of a number
			break
		}
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			u.in = u.in[i+1:]
			return n
		}
	}
	u.in, u.torn = nil, true
	return 0
}

// count decodes a number of items, each of at least one byte.
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

// atMost decodes a number that is not larger than limit.
func (u *unpacker) atMost(limit uint64) uint64 {
	n := u.number()
	if n > limit {
		u.in, u.torn = nil, true
		return 0
	}
	return n
}

func (u *unpacker) flag() bool { return u.atMost(1) == 1 }

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
	size := uint32(len(body)) //nolint:gosec // at most maxFrame
	head := [4]byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)}
	var rights []byte
	if len(fds) > 0 {
		rights = syscall.UnixRights(fds...)
	}
	if err := syscall.Sendmsg(fd, head[:], rights, nil, syscall.MSG_NOSIGNAL); err != nil {
		return err
	}
	for len(body) > 0 {
		n, err := syscall.SendmsgN(fd, body, nil, nil, syscall.MSG_NOSIGNAL)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}

// Receive reads one frame from a blocking socket. io.EOF means that the other
// end is closed.
func Receive(fd int, f Frame) (fds []int, err error) {
	var head [4]byte
	rights := make([]byte, syscall.CmsgSpace(65*4))
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
	size := uint32(head[0])<<24 | uint32(head[1])<<16 | uint32(head[2])<<8 | uint32(head[3])
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
		n, oobn, _, _, err = syscall.Recvmsg(fd, p, oob, syscall.MSG_CMSG_CLOEXEC|syscall.MSG_WAITALL)
		if !errors.Is(err, syscall.EINTR) {
			return n, oobn, err
		}
	}
}

func descriptors(rights []byte) (fds []int, err error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		some, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return fds, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}
