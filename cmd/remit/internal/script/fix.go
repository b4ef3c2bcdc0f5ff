package script

import (
	"context"
	"regexp"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// suggestFix returns an outcome whose error says each thing once, and how to
// fix it if that is known.
func suggestFix(o tool.Outcome, how *startup.Flags) tool.Outcome {
	if o.Error == nil {
		return o
	}
	p := *o.Error
	p.Why = render.Once(p.Why)
	switch {
	case o.Status == tool.StatusPending: // standard error shows how to approve it
		p.Fix += ": " + how.ResumeHint(o.Call)
	case p.Fix == "":
		p.Fix = fixFor(o.Tool, p.Why, &how.Workspace)
	}
	o.Error = &p
	return o
}

// withFix adds to a claimed file whether the claim's owner is still running.
func (r *runner) withFix(ctx context.Context, o tool.Outcome) tool.Outcome {
	if o.Error == nil {
		return o
	}
	held := o.Error.Fix == "" && o.Status != tool.StatusPending
	o = suggestFix(o, &r.flags)
	if m := claimHolder.FindStringSubmatch(o.Error.Why); held && m != nil && state.OwnerGone(ctx, r.journal, m[1]) {
		o.Error.Fix = "its process is gone: " + r.flags.Hint("recover") + " finishes what it left and names what stays open; or revert it: " + r.flags.Hint("revert", m[1])
	}
	return o
}

// approveHint returns the command that approves a pending call. It names what the
// call wants to change, if that is known.
func approveHint(p *state.Workspace, c *revert.Call) string {
	if c.Asked.Purpose == "" {
		return p.Hint("approve", c.Ref.Call)
	}
	return p.Hint("show", c.Ref.Call) + " and " + p.Hint("approve", c.Ref.Call, "--request", c.Asked.Digest)
}

// claimHolder matches the transaction that has the claim.
var claimHolder = regexp.MustCompile(`is held by transaction (t_[0-9a-z]+)`)

// fixFor returns how to fix a call that failed for this reason.
func fixFor(name, why string, where *state.Workspace) string {
	if m := claimHolder.FindStringSubmatch(why); m != nil {
		return "wait until that transaction ends, or revert it: " + where.Hint("revert", m[1])
	}
	if strings.Contains(why, "its folder does not exist") {
		return "make the folder: dir_create makes it and those above it, and so does file_write with \"parents\": true"
	}
	if strings.HasPrefix(name, "file_") && strings.Contains(why, "no such file or directory") {
		return "check the path: file_list shows what is there"
	}
	return ""
}
