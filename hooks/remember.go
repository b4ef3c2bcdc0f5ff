package hooks

import (
	"context"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// keepAnswer remembers the answer to the prompt of the client, if the policy says
// so. That the client used its tool shows that the person agreed. A use that
// failed shows nothing, and neither does one whose end is not reported.
func (one *session) keepAnswer(ctx context.Context, c *call, id string, last tool.Outcome) {
	switch {
	case last.Status != tool.StatusDone || !remembers(c.asked):
	case c.agreed || c.shown != nil && c.code == 0:
		one.remember(ctx, id)
	case !c.begun() && c.id != "": // the call ended before the client asks
		one.mu.Lock()
		defer one.mu.Unlock()
		one.prompted[c.id] = id
	}
}

// agreed remembers the answer about a use whose call had ended before the client
// asked.
func (one *session) agreed(ctx context.Context, e Event) {
	one.mu.Lock()
	id := one.prompted[e.Use]
	delete(one.prompted, e.Use)
	one.mu.Unlock()
	if id != "" && !e.Failed {
		one.remember(ctx, id)
	}
}

func (one *session) remember(ctx context.Context, id string) {
	if _, err := one.space.Runtime.KeepApproval(context.WithoutCancel(ctx), id); err != nil {
		one.server.tell(err) // the person is asked again
	}
}

func remembers(asked tool.Outcome) bool {
	return asked.Decision != nil && asked.Decision.Remember != nil && asked.Decision.Remember.Scope == perm.RememberSession
}

// covers tells the person what their answer covers beside the call.
func covers(asked tool.Outcome) string {
	if !remembers(asked) {
		return ""
	}
	return ". A yes also covers, in this session: " + strings.Join(asked.Decision.Remember.Keys, ", ")
}
