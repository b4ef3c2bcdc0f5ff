//go:build amd64 || arm64

package shim

import (
	"errors"
	"strconv"
	"syscall"
)

// raise brings up the loopback of the sandbox's own network. It refuses if the
// loopback is already up: then the network belongs to another namespace.
func raise() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }()
	lo := interfaceFlags{name: [16]byte{'l', 'o'}}
	if err := ioctl(fd, syscall.SIOCGIFFLAGS, &lo); err != nil {
		return err
	}
	if lo.flags&syscall.IFF_UP != 0 {
		return errors.New("it is up already, so the network is not the sandbox's own")
	}
	lo.flags |= syscall.IFF_UP
	return ioctl(fd, syscall.SIOCSIFFLAGS, &lo)
}

// listenForProxy listens on the proxy's port of the sandbox's own loopback. No
// other network can reach it. The program does not inherit the socket, and
// cannot bind the port: the parent accepts on the socket until the program has
// ended.
func (s *sandboxBuild) listenForProxy() error {
	if s.Proxy == 0 || !s.loopback {
		return nil
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(s.Proxy), Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = syscall.Listen(fd, proxyBacklog)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return err
	}
	s.proxy = fd
	return nil
}

// proxyBacklog is the number of connections that wait for the proxy.
const proxyBacklog = 128

// countNetwork reads the kernel's counters of the sandbox's own network, which
// no other process uses.
func (s *sandboxBuild) countNetwork() {
	if !s.loopback {
		return
	}
	const most = 16 << 10
	text, _ := readText("/proc/net/snmp", most)
	six, _ := readText("/proc/net/snmp6", most)
	for _, c := range []struct {
		rule  string
		count int
	}{
		{RuleNetwork, column(string(text), "Ip:", "OutNoRoutes") + row(string(six), "Ip6OutNoRoutes")},
		{RulePort, column(string(text), "Tcp:", "AttemptFails")},
		{RuleDatagram, column(string(text), "Udp:", "NoPorts") + row(string(six), "Udp6NoPorts")},
	} {
		if c.count > 0 {
			s.met.add(c.rule, "")
		}
	}
}

// column returns a number of a table whose lines begin with the table's name:
// the first line has the names of the columns, the second their numbers.
func column(text, table, name string) int {
	at, heads := -1, true
	for line, rest, more := cut(text, '\n'); more; line, rest, more = cut(rest, '\n') {
		word, words, some := cut(line, ' ')
		if word != table {
			continue
		}
		for i := 0; some; i++ {
			word, words, some = cut(words, ' ')
			if heads && word == name {
				at = i
			}
			if !heads && i == at {
				n, _ := strconv.Atoi(word)
				return n
			}
		}
		heads = false
	}
	return 0
}

// row returns the number that follows a name and white space.
func row(text, name string) int {
	for line, rest, more := cut(text, '\n'); more; line, rest, more = cut(rest, '\n') {
		if len(line) <= len(name) || line[:len(name)] != name || line[len(name)] != ' ' && line[len(name)] != '\t' {
			continue
		}
		line = line[len(name):]
		for line != "" && (line[0] == ' ' || line[0] == '\t') {
			line = line[1:]
		}
		n, _ := strconv.Atoi(line)
		return n
	}
	return 0
}
