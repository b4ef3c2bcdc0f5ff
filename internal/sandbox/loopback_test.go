//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/shim"
)

// useLoopback is a program that connects to itself in every way that test
// servers do.
func useLoopback() int {
	err := errors.Join(
		serve("tcp4", "127.0.0.1:0"),
		serve("tcp", ":0"), // MPTCP first, on both IP versions if there are both
		serve("tcp4", "0.0.0.0:80"),
		datagram("udp4", "127.0.0.1:0"),
		interfaces(),
	)
	if _, failed := os.Stat("/proc/net/if_inet6"); failed == nil {
		err = errors.Join(err, serve("tcp6", "[::1]:0"), datagram("udp6", "[::1]:0"))
	}
	if at := os.Getenv("SOCKET"); at != "" {
		err = errors.Join(err, serve("unix", at))
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// serve sends data to its own listener and receives it again.
func serve(network, at string) error {
	l, err := net.Listen(network, at)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	go repeatAll(l)
	to := l.Addr().String()
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		to = fmt.Sprint("127.0.0.1:", tcp.Port)
	}
	c, err := net.Dial(strings.TrimRight(network, "46"), to)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err = c.Write([]byte("abc")); err == nil {
		_, err = io.ReadFull(c, make([]byte, 3))
	}
	return err
}

func datagram(network, at string) error {
	l, err := net.ListenPacket(network, at)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	go repeat(l)
	c, err := net.Dial(network, l.LocalAddr().String())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err = c.Write([]byte("abc")); err == nil {
		_, err = io.ReadFull(c, make([]byte, 3))
	}
	return err
}

// interfaces checks that the loopback is up and the only interface.
func interfaces() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	if all = slices.DeleteFunc(all, func(i net.Interface) bool { return i.Flags&net.FlagUp == 0 }); len(all) != 1 || all[0].Name != "lo" {
		return fmt.Errorf("interfaces: %v", all)
	}
	return nil
}

func itself(t *testing.T, probe string, env ...string) Spec {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	return Spec{
		Argv: []string{exe}, System: append(System(), exe), Require: Strict,
		Env: append([]string{probeEnv + "=" + probe, "PATH=/usr/bin:/bin"}, env...),
	}
}

// TestLoopback checks that a program can connect to itself, on its own network.
func TestLoopback(t *testing.T) {
	needStrict(t)
	text, exit, p := finish(t, itself(t, "use its loopback"))
	require.NoError(t, p.Close())
	require.Zero(t, exit.Code, text)
	require.Empty(t, exit.Met)
	require.Equal(t, Strict, p.Reached().Level)
}

// TestUnixSockets checks that a program can use sockets in a root with an
// overlay or in a copy. In a root that is shown as it is, it could reach the
// host's.
func TestUnixSockets(t *testing.T) {
	needStrict(t)
	for name, r := range map[string]Root{
		"overlay": {View: Overlay}, "copy": {View: Direct, Upper: newRoot(t)}, "live": {View: Direct},
	} {
		t.Run(name, func(t *testing.T) {
			r.Dir = newRoot(t)
			there, err := net.Listen("unix", filepath.Join(r.Dir, "there"))
			require.NoError(t, err)
			defer func() { _ = there.Close() }()
			spec := itself(t, "use its loopback", "SOCKET="+filepath.Join(r.Dir, "socket"))
			spec.Roots = []Root{r}
			text, exit, p := finish(t, spec)
			require.NoError(t, p.Close())
			if name == "live" {
				require.Equal(t, 1, exit.Code)
				require.Contains(t, text, unix.EAFNOSUPPORT.Error())
				require.Len(t, exit.Met, 1)
				require.Contains(t, exit.Met[0].Text, "a Unix socket, since a root is shown as it is")
				return
			}
			require.Zero(t, exit.Code, text)
			require.Empty(t, exit.Met)
			spec = itself(t, "path socket there", "OUT="+r.Dir)
			spec.Roots = []Root{r}
			text, exit, p = finish(t, spec)
			require.NoError(t, p.Close())
			require.Equal(t, 1, exit.Code, text)
		})
	}
}

// meetRules is a program that meets the rules in MEET.
func meetRules() int {
	for what := range strings.SplitSeq(os.Getenv("MEET"), ",") {
		var err error
		switch what {
		case "call":
			for range 100 {
				err = unix.Mount("none", "/tmp", "tmpfs", 0, "")
			}
		case "namespace":
			err = unix.Unshare(unix.CLONE_NEWUSER)
		case "packet":
			err = socket(unix.AF_PACKET, unix.SOCK_RAW, 0)()
		case "raw":
			err = socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)()
		case "mptcp":
			err = socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)()
		case "network":
			_, err = net.Dial("tcp", "192.0.2.1:80")
		case "port":
			_, err = net.Dial("tcp", "127.0.0.1:9")
		case "name":
			_, err = net.LookupHost("example.com")
		}
		if err == nil {
			fmt.Println("it could: " + what)
			return 1
		}
		var errno syscall.Errno
		if errors.As(err, &errno) {
			fmt.Println(what, int(errno))
		}
	}
	return 3
}

// TestMeetRules checks that the exit of a program lists each rule that it met,
// once. The program gets the same error as without the listener.
func TestMeetRules(t *testing.T) {
	needStrict(t)
	for what, want := range map[string]struct {
		rule  string
		text  string
		errno syscall.Errno
	}{
		"call":      {shim.RuleCall, "the sandbox refused the system call mount, with EPERM", unix.EPERM},
		"namespace": {shim.RuleCall, "the sandbox refused the system call unshare, with a namespace, with EPERM", unix.EPERM},
		"packet":    {shim.RuleSocket, "the sandbox refused a packet socket (family, type, protocol: 17 3 0), with EAFNOSUPPORT", unix.EAFNOSUPPORT},
		"raw":       {shim.RuleSocket, "the sandbox refused a raw Internet socket (family, type, protocol: 2 3 1), with EAFNOSUPPORT", unix.EAFNOSUPPORT},
		"mptcp":     {"", "", unix.EPROTONOSUPPORT}, // programs continue with TCP
		"network":   {shim.RuleNetwork, "the program tried to reach an address outside the sandbox, which has no network but its own loopback", unix.ENETUNREACH},
		"port":      {shim.RulePort, "nothing listened on a loopback port that the program tried: the loopback is the sandbox's own, and servers of the machine are not on it", unix.ECONNREFUSED},
		"name":      {shim.RuleDatagram, "nothing answered a datagram on the loopback: the sandbox has no network, so no name can be looked up", 0},
	} {
		t.Run(what, func(t *testing.T) {
			text, exit, p := finish(t, itself(t, "meet rules", "MEET="+what))
			require.NoError(t, p.Close())
			require.Equal(t, 3, exit.Code, text)
			if want.errno != 0 {
				require.Equal(t, fmt.Sprintln(what, int(want.errno)), text)
			}
			if want.rule == "" {
				require.Empty(t, exit.Met)
				return
			}
			require.Contains(t, exit.Met, Restriction{Rule: want.rule, Text: want.text})
			require.Len(t, exit.Met, 1)
		})
	}
}
