//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

func socket(family, kind, protocol int) func() error {
	return func() error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
}

func address(env string) unix.Sockaddr {
	at := netip.MustParseAddrPort(os.Getenv(env))
	if at.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
}

// connect sends data to a listener outside, and receives it again: sending a
// datagram alone proves nothing.
func connect(family, kind, protocol int, env string) func() error {
	return func() error {
		fd, err := unix.Socket(family, kind, protocol)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		if err := unix.Connect(fd, address(env)); err != nil {
			return err
		}
		if _, err = unix.Write(fd, []byte("out")); err != nil {
			return err
		}
		_, err = unix.Read(fd, make([]byte, 3))
		return err
	}
}

// repeat returns received data, as connect expects.
func repeat(c net.PacketConn) {
	buf := make([]byte, 16)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = c.WriteTo(buf[:n], from)
	}
}

// repeatAll is repeat for a listener.
func repeatAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			_, _ = io.CopyN(c, c, 3)
		}()
	}
}

// taken binds a port that is in use outside. On its own network the program may
// have it.
func taken() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	switch err = unix.Bind(fd, address("TCP")); {
	case err == nil:
		return errors.New("the port is free here")
	case errors.Is(err, unix.EADDRINUSE):
		return nil
	}
	return err
}

func listen(protocol int) func() error {
	return func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return err
		}
		return unix.Listen(fd, 1)
	}
}

func dialUnix(at func() string) func() error {
	return func() error {
		c, err := net.Dial("unix", at())
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// lower takes the loopback down, which only its owner may.
func lower() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(0)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

func sameNetwork() error {
	if now, err := os.Readlink("/proc/self/ns/net"); err != nil || now != os.Getenv("NETWORK") {
		return fmt.Errorf("%q: %w", now, errors.Join(err, errors.ErrUnsupported))
	}
	return nil
}

func netProbes() []probe {
	all := []probe{
		{name: "tcp connect", stops: []string{"network", "seccomp", "landlock"}, run: connect(unix.AF_INET, unix.SOCK_STREAM, 0, "TCP")},
		{name: "tcp port of the host", stops: []string{"network", "seccomp", "landlock"}, run: taken},
		{name: "mptcp connect", stops: []string{"network", "seccomp"}, run: connect(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, "TCP")},
		{name: "mptcp listen", stops: []string{"seccomp"}, run: listen(unix.IPPROTO_MPTCP)},
		{name: "udp send", stops: []string{"network", "seccomp"}, run: connect(unix.AF_INET, unix.SOCK_DGRAM, 0, "UDP")},
		{name: "network of the host", stops: []string{"network"}, run: sameNetwork},
		{name: "take the loopback down", stops: []string{"capabilities"}, run: lower},
		{name: "raw", stops: []string{"seccomp", "capabilities"}, run: socketInOwnNet(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), by: "root"},
		{name: "packet", stops: []string{"seccomp", "capabilities"}, run: socketInOwnNet(unix.AF_PACKET, unix.SOCK_RAW, 0), by: "root"},
		{name: "netlink of devices", stops: []string{"seccomp"}, run: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)},
		{name: "netlink of anything", stops: []string{"seccomp"}, run: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC)},
		{name: "vsock", stops: []string{"seccomp"}, run: socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{name: "abstract socket", stops: []string{"network", "landlock"}, run: dialUnix(func() string { return os.Getenv("ABSTRACT") })},
		{name: "path socket outside", stops: []string{"mounts", "landlock"}, run: dialUnix(func() string { return os.Getenv("OUT") + "/socket" })},
		{name: "path socket in the root", stops: []string{"mounts", "landlock"}, run: dialUnix(func() string { return os.Getenv("ROOT") + "/socket" })},
	}
	if os.Getenv("TCP6") != "" { // this machine has IPv6
		all = append(all, probe{name: "tcp v6 connect", stops: []string{"network", "seccomp", "landlock"}, run: connect(unix.AF_INET6, unix.SOCK_STREAM, 0, "TCP6")})
	}
	return all
}

func socketInOwnNet(family, kind, protocol int) func() error {
	return func() error {
		if err := socket(family, kind, protocol)(); err != nil {
			return fmt.Errorf("socket: %w", err)
		}
		return nil
	}
}
