//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// The two ends talk over a socket pair: a frame is its length in four bytes, big
// endian, and JSON; descriptors ride on the length. Both ends are one binary, so
// the format has no version. The shim ends when its socket does: a parent that
// dies takes its programs along.

// maxFrame bounds what one end makes the other hold, in bytes.
const maxFrame = 64 << 20

// order is what the shim is told first. Text that need not be UTF-8 travels as
// bytes.
type order struct {
	Argv, Env  [][]byte
	Dir        []byte
	System     [][]byte
	Roots      []orderRoot
	Network    bool
	Namespaces bool
	Limits     Limits
	Require    Level
	Without    []string // layers left out, by tests
}

type orderRoot struct {
	Dir, Upper []byte
	Dev, Ino   uint64
	View       View
	Masked     [][]byte
}

// message is what the shim says.
type message struct {
	Began  *Reached // the program was started; with it, a descriptor of each overlay's upper folder
	Ended  *Exit    // the program and everything that it started are gone
	Locked []locked // with Ended
	Failed string   // nothing was started, and why
	Level  bool     // with Failed: because of Spec.Require
}

// locked is what an ordinary user could not read in an upper folder, until the
// shim changed its bits.
type locked struct {
	Upper int // index of the overlay
	Name  []byte
	Mode  uint32 // what the bits were
}

func bytesOf(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

func stringsOf(in [][]byte) []string {
	out := make([]string, len(in))
	for i, b := range in {
		out[i] = string(b)
	}
	return out
}

func (s Spec) order(namespaces bool) order {
	o := order{
		Argv: bytesOf(s.Argv), Env: bytesOf(s.Env), Dir: []byte(s.Dir), System: bytesOf(s.System),
		Network: s.Network, Namespaces: namespaces, Limits: s.Limits.withDefaults(), Require: s.Require, Without: s.without,
	}
	if s.System == nil {
		o.System = bytesOf(System())
	}
	if s.Dir == "" {
		o.Dir = []byte("/")
	}
	for _, r := range s.Roots {
		o.Roots = append(o.Roots, orderRoot{
			Dir: []byte(r.Dir), Upper: []byte(r.Upper), Dev: r.Dev, Ino: r.Ino, View: r.View, Masked: bytesOf(r.Masked),
		})
	}
	return o
}

// send writes one frame to a blocking socket.
func send(fd int, v any, fds ...int) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(body))) //nolint:gosec // frames are small
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(fd, head[:], rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	for len(body) > 0 {
		n, err := unix.Write(fd, body)
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

// receive reads one frame of a blocking socket. io.EOF means that the other end
// is gone.
func receive(fd int, v any) (fds []int, err error) {
	var head [4]byte
	rights := make([]byte, unix.CmsgSpace(64*4))
	n, rn, _, _, err := recvmsg(fd, head[:], rights)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, io.EOF
	case n < len(head): // a frame's length is written in one step
		return nil, errors.New("a torn frame")
	}
	if fds, err = descriptors(rights[:rn]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return fds, fmt.Errorf("a frame of %d bytes", size)
	}
	body := make([]byte, size)
	for got := 0; got < len(body); {
		n, err := unix.Read(fd, body[got:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fds, err
		case n == 0:
			return fds, io.ErrUnexpectedEOF
		default:
			got += n
		}
	}
	return fds, json.Unmarshal(body, v)
}

func recvmsg(fd int, p, oob []byte) (n, oobn, flags int, from unix.Sockaddr, err error) {
	for {
		n, oobn, flags, from, err = unix.Recvmsg(fd, p, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
		if !errors.Is(err, unix.EINTR) {
			return n, oobn, flags, from, err
		}
	}
}

func descriptors(rights []byte) (fds []int, err error) {
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
