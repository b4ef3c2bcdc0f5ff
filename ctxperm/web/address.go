package web

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Network is a range of addresses, at one port or at any. The zero Network is
// empty.
type Network struct {
	prefix netip.Prefix
	port   uint16 // 0: any
}

// ParseNetwork parses an address, an address with a port, or a prefix:
// 127.0.0.1, [::1]:8080, 10.0.0.0/8.
func ParseNetwork(text string) (Network, error) {
	if p, err := netip.ParsePrefix(text); err == nil && p.Masked() == p && !p.Addr().Is4In6() {
		return Network{prefix: p}, nil
	}
	if a, err := netip.ParseAddrPort(text); err == nil && a.Port() != 0 && plainAddr(a.Addr()) {
		return Network{prefix: netip.PrefixFrom(a.Addr(), a.Addr().BitLen()), port: a.Port()}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil && plainAddr(a) {
		return Network{prefix: netip.PrefixFrom(a, a.BitLen())}, nil
	}
	return Network{}, fmt.Errorf("%q is no network: valid are an address, an address with a port, and a prefix without host bits, such as 10.0.0.7, 127.0.0.1:8080 and 10.0.0.0/8", text)
}

func plainAddr(a netip.Addr) bool { return a.Zone() == "" && !a.Is4In6() }

// String returns the text that ParseNetwork parses.
func (n Network) String() string {
	switch {
	case !n.prefix.IsValid():
		return "none"
	case n.port != 0:
		return netip.AddrPortFrom(n.prefix.Addr(), n.port).String()
	case n.prefix.IsSingleIP():
		return n.prefix.Addr().String()
	default:
		return n.prefix.String()
	}
}

func (n Network) holds(a netip.Addr, port uint16) bool {
	return n.prefix.IsValid() && n.prefix.Contains(a) && (n.port == 0 || n.port == port)
}

// prefixes parses a list of prefixes.
func prefixes(texts string) (out []netip.Prefix) {
	for text := range strings.FieldsSeq(texts) {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// The addresses that are not those of a host on the public internet, from the
// IANA registries of special-purpose addresses (IPv4 and IPv6). All entries
// count, even those that are globally reachable. Hosts have IPv6 addresses only
// in 2000::/3. Everything outside it (mapped, translated, unique local,
// link-local, site-local, multicast, the old forms) is special as a whole.
var (
	special4 = prefixes(`0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
		192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24
		224.0.0.0/4 240.0.0.0/4`)
	global6  = netip.MustParsePrefix("2000::/3")
	special6 = prefixes(`2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20`)
	// Cloud services that give credentials, or control of the machine, to every
	// client that can send them a request. One of them has a public address.
	metadata = prefixes(`169.254.169.254/32 169.254.169.253/32 169.254.169.123/32 169.254.170.2/32 169.254.170.23/32 168.63.129.16/32
		100.100.100.200/32 192.0.0.192/32 169.254.0.23/32 169.254.42.42/32 fd00:ec2::/32 fd20:ce::254/128 fd00:42::42/128`)
)

func within(a netip.Addr, list []netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// special reports whether an address is not that of a host on the public
// internet.
func special(a netip.Addr) bool {
	switch {
	case within(a, metadata):
		return true
	case a.Is4():
		return within(a, special4)
	default:
		return !global6.Contains(a) || within(a, special6)
	}
}

// embedded returns the IPv4 address into which a translator on the path turns
// an IPv6 address.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	var at int
	switch {
	case within(a, prefixes("64:ff9b::/96 ::/96 ::ffff:0:0:0/96 64:ff9b:1::/48")):
		at = 12
	case within(a, prefixes("2002::/16")):
		at = 2
	case within(a, prefixes("2001::/32")): // Teredo writes it inverted
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	default:
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[at : at+4])), true
}

// addressError states that a connection to an address was refused.
type addressError struct{ address string }

func (e *addressError) Error() string {
	return fmt.Sprintf("%s is not on the public internet, and no setting allows its network", e.address)
}

// checkAddress decides one connection by its address, immediately before the
// dial. A network does not include a cloud service in it: that needs its own
// entry.
func checkAddress(hostport string, allowed []Network) error {
	refused := &addressError{address: hostport}
	ap, err := netip.ParseAddrPort(hostport)
	if err != nil || ap.Addr().Zone() != "" {
		return refused
	}
	a := ap.Addr().Unmap()
	if !special(a) {
		return nil
	}
	ok := func(a netip.Addr) bool {
		return slices.ContainsFunc(allowed, func(n Network) bool {
			return n.holds(a, ap.Port()) && (n.prefix.IsSingleIP() || !within(a, metadata))
		})
	}
	if !ok(a) {
		return refused
	}
	if inner, has := embedded(a); has && !a.IsLoopback() && special(inner) && !ok(inner) {
		return refused
	}
	return nil
}

// hostPort joins a host and a port as in an address.
func hostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}
