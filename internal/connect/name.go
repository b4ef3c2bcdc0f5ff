package connect

import (
	"regexp"
	"slices"
	"strings"
)

// The gateway joins the names of server and tool, and accepts only names that
// can be split again: letters, digits and . - _, no two _ in a row and none at
// the end. Clients accept any name.
var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]|_[A-Za-z0-9.-])*$`)
	notInName = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
)

const longestName = 64

// gatewayName returns the name of a server behind the gateway. It keeps a valid
// name, replaces spaces by -, and otherwise adds a suffix that keeps it unique.
func gatewayName(name string) string {
	if spaceless := strings.ReplaceAll(name, " ", "-"); len(name) <= longestName && plainName.MatchString(spaceless) {
		return spaceless
	}
	plain := strings.Trim(notInName.ReplaceAllString(name, "-"), ".-")
	plain = strings.TrimRight(plain[:min(len(plain), longestName-9)], ".-")
	if plain == "" {
		plain = "server"
	}
	return plain + "-" + digest([]byte(name))[:8]
}

// alikeNames returns the same text for names that the gateway does not accept
// together.
func alikeNames(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
}

// behind returns the server's name behind the gateway.
func (s removedServer) behind() string {
	if s.As != "" {
		return s.As
	}
	return s.Name
}

// renamed returns the server's name behind the gateway if it differs, or "".
func renamed(name string) string {
	if as := gatewayName(name); as != name {
		return as
	}
	return ""
}

// alike rejects a server whose name a reader could confuse with another one:
// the gateway would start neither.
func (e *gatewayEdit) alike(c change, is *table, m movedServer, gone []movedServer) error {
	var there []string
	for _, s := range is.servers {
		if !slices.ContainsFunc(gone, func(old movedServer) bool { return old.name == s.name }) {
			there = append(there, s.name)
		}
	}
	for _, p := range c.in {
		there = append(there, p.name)
	}
	for _, name := range there {
		if name != m.name && alikeNames(name) == alikeNames(m.name) {
			return &ConflictError{m.name, m.from, name + ", whose name could be taken for it", m.gateway}
		}
	}
	return nil
}
