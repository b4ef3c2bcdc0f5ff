package connect

import (
	"regexp"
	"slices"
	"strings"
)

// The gateway puts a server's name and a tool's together, and takes names that can be told apart again: letters, digits and
// . - _, no two _ in a row and none at the end. Clients take any.
var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]|_[A-Za-z0-9.-])*$`)
	notInName = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
)

const longestName = 64

// gatewayName is what a server is called behind the gateway: as it was, where that can be; with - for spaces; else with
// something behind it that keeps it from being another one's.
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

// alikeNames is the same for names that the gateway does not take beside each other.
func alikeNames(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
}

// behind is what the server is called behind the gateway.
func (s removedServer) behind() string {
	if s.As != "" {
		return s.As
	}
	return s.Name
}

// renamed is what a server is called behind the gateway, where that is not its name.
func renamed(name string) string {
	if as := gatewayName(name); as != name {
		return as
	}
	return ""
}

// alike refuses a server that comes beside one whose name could be taken for its own: the gateway would start neither.
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
