package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
	"github.com/remit-dev/remit/mcp/gateway/internal/pin"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
)

// nameConflicts finds the tools, or the prompts, of one server that a reader
// could confuse with one another, or with another one. The gateway serves
// neither, as it cannot know which one a caller means.
func (b *builder) nameConflicts(u *upstream.Upstream, defs []definition.Definition, seen map[string]string, name func(server, name string) string) (out []pin.Item) {
	mine := map[string][]definition.Definition{}
	for _, d := range defs {
		like := naming.Likeness(name(u.Server.Name, d.Name))
		mine[like] = append(mine[like], d)
	}
	for like, all := range mine {
		other, taken := seen[like]
		for i, d := range all {
			what, _, _ := strings.Cut(definition.Describe(d.Key()), " ")
			switch {
			case taken:
				out = append(out, pin.Item{Server: u.Server.Name, Tool: d.Key(), After: d.Raw, Why: fmt.Sprintf("it could be taken for the %s %q", what, other)})
			case len(all) > 1:
				out = append(out, pin.Item{Server: u.Server.Name, Tool: d.Key(), After: d.Raw, Why: fmt.Sprintf("the %ss %q and %q could be taken for one another", what, d.Name, all[(i+1)%len(all)].Name)})
			}
		}
		if len(all) > 1 || taken {
			continue
		}
		seen[like] = naming.ForClients(u.Server.Name, all[0].Name)
	}
	slices.SortFunc(out, func(x, y pin.Item) int { return cmp.Compare(x.Tool, y.Tool) })
	return out
}

// reason returns why a tool is in quarantine, or "".
func reason(held []pin.Item, server, name string) string {
	for _, q := range held {
		if q.Tool == name || q.Tool == "" {
			return fmt.Sprintf("it is in quarantine: %s; remit gateway accept %s/%s, with the --config and --state of the gateway, shows the difference and accepts it", q.Why, server, name)
		}
	}
	return ""
}
