//go:build amd64 || arm64

package sandbox

import (
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/shim"
)

// inWords adds the text of a restriction that the shim knows only as numbers.
func inWords(r shim.Restriction) Restriction {
	text := r.Text
	switch r.Rule {
	case shim.RuleCall:
		text = "the sandbox refused the system call " + called(text) + ", with EPERM"
	case shim.RuleSocket:
		text = "the sandbox refused " + socketKind(text) + ", with EAFNOSUPPORT"
	case shim.RuleNetwork:
		text = "the program tried to reach an address outside the sandbox, which has no network but its own loopback"
	case shim.RulePort:
		text = "nothing listened on a loopback port that the program tried: the loopback is the sandbox's own, and servers of the machine are not on it"
	case shim.RuleDatagram:
		text = "nothing answered a datagram on the loopback: the sandbox has no network, so no name can be looked up"
	case shim.RuleProxy:
		text = "the sandbox could not listen for the proxy: " + text
	case shim.RuleLoopback:
		text = "the sandbox has no loopback: " + text
	}
	return Restriction{Rule: r.Rule, Text: text}
}

func called(number string) string {
	nr, err := strconv.ParseUint(number, 10, 32)
	if name := callName(uint32(nr)); err == nil && name != "" {
		return name
	}
	return "number " + number
}

// socketKind returns the name of a socket's family, type and protocol.
func socketKind(about string) string {
	family, rest, _ := strings.Cut(about, " ")
	kind, _, _ := strings.Cut(rest, " ")
	name := "a socket"
	switch family {
	case "1":
		return "a Unix socket, since a root is shown as it is and sockets of the machine can lie in it"
	case "2", "10":
		name = "an Internet socket"
		if kind != "1" && kind != "2" {
			name = "a raw Internet socket"
		}
	case "16":
		name = "a netlink socket"
	case "17":
		name = "a packet socket"
	}
	return name + " (family, type, protocol: " + about + ")"
}
