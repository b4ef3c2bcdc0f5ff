//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// useProxy is a program that uses its proxy in the intended way, and tries to
// take its place.
func useProxy() int {
	err := errors.Join(throughProxy(), squat(), noDescriptors())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// throughProxy sends data to the proxy and receives it again.
func throughProxy() error {
	c, err := net.Dial("tcp4", strings.TrimPrefix(os.Getenv("HTTP_PROXY"), "http://"))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte("abc")); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, 3))
	return err
}

// squat tries to listen on the port of the proxy, by each way that shares
// ports.
func squat() error {
	for _, at := range []unix.Sockaddr{
		&unix.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}}, &unix.SockaddrInet4{Port: ProxyPort},
		&unix.SockaddrInet6{Port: ProxyPort},
	} {
		family := unix.AF_INET
		if _, six := at.(*unix.SockaddrInet6); six {
			family = unix.AF_INET6
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
		if err != nil {
			continue // no IPv6
		}
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		err = unix.Bind(fd, at)
		if err == nil {
			err = unix.Listen(fd, 1)
		}
		_ = unix.Close(fd)
		if err == nil {
			return fmt.Errorf("the program listens on the port of the proxy: %v", at)
		}
	}
	return nil
}

// noDescriptors checks that the program inherited its three standard files and
// no socket.
func noDescriptors() error {
	for fd := range 64 {
		var is unix.Stat_t
		if unix.Fstat(fd, &is) == nil && is.Mode&unix.S_IFMT == unix.S_IFSOCK {
			return fmt.Errorf("descriptor %d is a socket", fd)
		}
	}
	return nil
}

// TestProxy checks that a program gets a listener whose connections this
// process accepts, that no program can take its place, and that a program has
// none without a request.
func TestProxy(t *testing.T) {
	needStrict(t)
	spec := itself(t, "use its proxy")
	spec.Proxy = []string{fmt.Sprint("HTTP_PROXY=http://127.0.0.1:", ProxyPort)}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	p, err := Start(context.Background(), "", spec, Stdio{Out: w, Err: w})
	_ = w.Close()
	require.NoError(t, err)
	require.NotNil(t, p.Proxy())
	l, err := net.FileListener(p.Proxy())
	require.NoError(t, err)
	go repeatAll(l)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	exit, err := p.Wait()
	require.NoError(t, err)
	require.Zero(t, exit.Code, string(text))
	require.NoError(t, p.Close())
	require.NoError(t, l.Close())

	spec.Proxy = nil
	text2, exit, q := finish(t, spec)
	require.Equal(t, 1, exit.Code)
	require.Contains(t, text2, "dial")
	require.Nil(t, q.Proxy())
	spec.Proxy, spec.Network = []string{"HTTP_PROXY=http://127.0.0.1:1"}, true
	_, _, q = finish(t, spec)
	require.Nil(t, q.Proxy(), "the network of the host has no proxy")
}

// TestBareProxy checks that a program without a network of its own gets no
// proxy, and no variables that name one.
func TestBareProxy(t *testing.T) {
	bareOnly(t)
	said, exit, p := finish(t, Spec{
		Argv: []string{"sh", "-c", `echo "[$HTTP_PROXY]"`}, Env: []string{"PATH=/usr/bin:/bin"}, Require: Partial,
		Proxy: []string{"HTTP_PROXY=http://127.0.0.1:3128"},
	})
	require.Zero(t, exit.Code)
	require.Equal(t, "[]\n", said)
	require.Nil(t, p.Proxy())
	require.NoError(t, p.Close())
}
