//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
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
	return &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
}

func connect(kind, protocol int, env string) func() error {
	return func() error {
		fd, err := unix.Socket(unix.AF_INET, kind, protocol)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		if err := unix.Connect(fd, address(env)); err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte("out"))
		return err
	}
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

func netProbes() []probe {
	const mptcp = 262
	return []probe{
		{name: "tcp connect", stops: []string{"network", "seccomp", "landlock"}, run: connect(unix.SOCK_STREAM, 0, "TCP")},
		{name: "tcp listen", stops: []string{"seccomp", "landlock"}, run: listen(0)},
		{name: "mptcp connect", stops: []string{"network", "seccomp"}, run: connect(unix.SOCK_STREAM, mptcp, "TCP")},
		{name: "mptcp listen", stops: []string{"seccomp"}, run: listen(mptcp)},
		{name: "udp send", stops: []string{"network", "seccomp"}, run: connect(unix.SOCK_DGRAM, 0, "UDP")},
		{name: "udp socket", stops: []string{"seccomp"}, run: socket(unix.AF_INET, unix.SOCK_DGRAM, 0)},
		{name: "tcp v6 socket", stops: []string{"seccomp"}, run: socket(unix.AF_INET6, unix.SOCK_STREAM, 0)},
		{name: "raw", stops: []string{"seccomp", "capabilities"}, run: socketInOwnNet(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), by: "root"},
		{name: "packet", stops: []string{"seccomp", "capabilities"}, run: socketInOwnNet(unix.AF_PACKET, unix.SOCK_RAW, 0), by: "root"},
		{name: "netlink", stops: []string{"seccomp"}, run: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)},
		{name: "vsock", stops: []string{"seccomp"}, run: socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{name: "abstract socket", stops: []string{"network", "landlock"}, run: dialUnix(func() string { return os.Getenv("ABSTRACT") })},
		{name: "path socket outside", stops: []string{"mounts", "landlock"}, run: dialUnix(func() string { return os.Getenv("OUT") + "/socket" })},
		{name: "path socket in the root", stops: []string{"mounts", "landlock"}, run: dialUnix(func() string { return os.Getenv("ROOT") + "/socket" })},
	}
}

func socketInOwnNet(family, kind, protocol int) func() error {
	return func() error {
		if err := socket(family, kind, protocol)(); err != nil {
			return fmt.Errorf("socket: %w", err)
		}
		return nil
	}
}
