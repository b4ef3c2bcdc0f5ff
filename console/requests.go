package console

import (
	"context"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// requestsOnPage limits the requests of one page.
const requestsOnPage = 200

// requestLine is a call that reached, or will reach, something that no difference
// of resources shows.
type requestLine struct {
	callview.Line
	Access []record.Access // what it asked for on the network
	Hosts  []effect.Host
	Held   bool // nothing of it has happened
	Other  bool // its effect is outside of what remit sees
}

// requests adds the calls of a difference that reached hosts, that are held, or
// whose effects are not shown.
func (c *Console) requests(ctx context.Context, p *diffPage, d diff.Diff) error {
	t, err := c.Runtime.Load(ctx, d.Txn)
	if err != nil {
		return err
	}
	of := func(all []diff.UntrackedCall, call *revert.Call) bool {
		return slices.ContainsFunc(all, func(u diff.UntrackedCall) bool { return u.Call == call.Ref.Call })
	}
	for _, call := range t.Calls {
		if d.Call != "" && call.Ref.Call != d.Call {
			continue
		}
		l := requestLine{Held: of(d.Held, call), Other: of(d.Untracked, call), Hosts: call.ContactedHosts()}
		for _, a := range callview.AttemptOf(call).Access {
			if (call.Started != nil || l.Held) && (strings.HasPrefix(a.Resource, "http://") || strings.HasPrefix(a.Resource, "https://")) {
				l.Access = append(l.Access, a)
			}
		}
		if !l.Held && !l.Other && len(l.Hosts)+len(l.Access) == 0 {
			continue
		}
		if len(p.Requests) == requestsOnPage {
			p.MoreRequests++
			continue
		}
		l.Line = c.lineOf(call)
		p.Requests = append(p.Requests, l)
	}
	return nil
}
