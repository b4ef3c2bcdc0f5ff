package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// maxWhy limits the reason of an answer, in bytes.
const maxWhy = 2000

type approvePage struct {
	Call, Tool, Txn string
	Session, Who    string
	State           string // waits, answered, expired, interrupted, ended
	Answer          string // who answered, and how
	Input           string
	Cut             bool
	Access          []record.Access
	Decision        *callview.Decision
	Keys            []string // what an approval for the session covers beside the call
	Once            bool     // the policy lets an approval cover this call only
	ForSession      bool     // the policy remembers an approval by itself
	Digest          string
	Shown           string // digest of the difference on the page
	Changed         bool   // the person saw another difference, and nothing was answered
	Earlier         string
	Files           []fileDiff
	Note            string
	Refused         string // why the person must not approve here
	Alive           bool
	Expires         string
	Beside          []group
	Command, Resume string
}

func (c *Console) approval(r *http.Request) (string, page, error) {
	ctx, id := r.Context(), idOf(r.URL.Query())
	t, call, err := revert.LoadCall(ctx, c.Runtime.Journal(), id)
	if err != nil {
		return "", page{}, err
	}
	if call.Asked == nil {
		return "", page{}, &problem{http.StatusNotFound, "This call asked for no approval", id}
	}
	d := approvePage{Call: id, Tool: call.Tool.Name, Txn: t.ID, Session: t.Session, Who: c.principal(ctx, t.Session), Access: call.Asked.Access, Digest: call.Asked.Digest, Earlier: call.Asked.Earlier(), Expires: when(call.Asked.Expires)}
	alive, err := c.Runtime.Journal().Alive(ctx, t.Owner)
	d.Alive = err != nil || alive
	d.Changed = r.URL.Query().Get("changed") == "1"
	c.state(&d, t, call)
	if err := c.request(ctx, &d, call); err != nil {
		return "", page{}, err
	}
	if d.State == "waits" {
		d.Refused = c.refused(ctx, id, call.Asked.Processes)
	}
	if c.Hint != nil {
		d.Command, d.Resume = c.Hint("pending", id), c.Hint("resume", id)
	}
	if d.Beside, err = c.beside(ctx, d.Session); err != nil {
		return "", page{}, err
	}
	return "approve", page{Title: "Approve " + call.Tool.Name, Place: "now", Data: d}, nil
}

// state says how the request stands. It reads the same record as the pages that
// list the call, so they never disagree.
func (c *Console) state(d *approvePage, t *revert.Txn, call *revert.Call) {
	answered := call.Answered != nil && call.Answered.Digest == call.Asked.Digest
	if call.Answered != nil {
		d.Answer = answerWord(call.Answered.Approved) + " by " + call.Answered.By
		if call.Answered.Why != "" {
			d.Answer += ": " + call.Answered.Why
		}
	}
	switch {
	case answered:
		d.State = "answered"
	case !call.Waits() || t.End != "":
		d.State = "ended"
	case call.Phase == revert.PhaseStarted && !d.Alive:
		d.State = "interrupted"
	case c.Now().After(call.Asked.Expires):
		d.State = "expired"
	default:
		d.State = "waits"
	}
}

// request adds what the approver must see.
func (c *Console) request(ctx context.Context, d *approvePage, call *revert.Call) error {
	var decision perm.DecisionRecord
	if err := json.Unmarshal(call.Asked.Decision, &decision); err != nil {
		return err
	}
	d.Decision = callview.DecisionOf(&decision)
	if decision.Remember != nil {
		d.Keys, d.Once, d.ForSession = decision.Remember.Keys, decision.Remember.Scope == "never", decision.Remember.Scope == perm.RememberSession
	}
	var texts callPage
	d.Input = texts.cut(pretty(callview.PendingInput(call, c.Runtime.Tools())))
	d.Cut = texts.Cut
	what, err := c.difference(ctx, d.Session, call)
	if err != nil {
		return err
	}
	d.Note, d.Shown = what.Note, what.Digest()
	if what.Patch == "" {
		return nil
	}
	if call.Asked.Purpose == "" {
		d.Files = append(d.Files, wanted(what.Patch, changed(call.Asked.Access)))
		return nil
	}
	for _, part := range splitPatch(what.Patch) {
		d.Files = append(d.Files, wanted(part, patchOf(part)))
	}
	return nil
}

// difference returns what a call that waits would change: in the files as they
// are now, or what its request is about.
func (c *Console) difference(ctx context.Context, session string, call *revert.Call) (callview.Preview, error) {
	if call.Asked.Purpose != "" {
		return callview.Preview{Patch: call.Asked.Preview}, nil
	}
	folders, err := callview.FoldersOf(ctx, c.Runtime.Journal(), session, c.Folders)
	if err != nil {
		return callview.Preview{}, err
	}
	return callview.PreviewCall(ctx, folders, c.Runtime.Tools(), call.Tool.Name, call.Tool.Digest, call.Asked.Input), nil
}

// changed returns the resource that a call of a file tool wants to change.
func changed(all []record.Access) string {
	for _, a := range all {
		if a.Action == string(perm.Write) || a.Action == string(perm.Delete) {
			return a.Resource
		}
	}
	return "the file"
}

// beside returns the newest calls of a session.
func (c *Console) beside(ctx context.Context, session string) ([]group, error) {
	var near timelinePage
	near.Session = session
	if _, err := c.find(ctx, &near, 0); err != nil {
		return nil, err
	}
	return near.Groups[:min(len(near.Groups), 5)], nil
}

// answer records the answer of a form. It names the request that the person saw.
func (c *Console) answer(r *http.Request) (string, error) {
	ctx, f := context.WithoutCancel(r.Context()), r.PostForm
	t, call, err := revert.LoadCall(ctx, c.Runtime.Journal(), idOf(f))
	if err != nil {
		return "", err
	}
	if call.Answered != nil && call.Asked != nil && call.Answered.Digest == call.Asked.Digest {
		return "", &problem{http.StatusConflict, "The call is answered already", answerWord(call.Answered.Approved) + " by " + call.Answered.By}
	}
	if call.Asked == nil || f.Get("request") == "" || call.Asked.Digest != f.Get("request") {
		return "", &problem{http.StatusConflict, "The call asks for something else now", "Nothing was answered. Open the call again to see its request."}
	}
	reply, err := c.replyOf(f)
	if err != nil {
		return "", err
	}
	reply.Call = idOf(f)
	to := "/approve?id=" + url.QueryEscape(reply.Call)
	if reply.Approved {
		what, err := c.difference(ctx, t.Session, call)
		if err != nil {
			return "", err
		}
		if f.Get("shown") != what.Digest() {
			return to + "&changed=1", nil
		}
	}
	return to, c.decide(ctx, call, reply, f)
}

// replyOf returns the answer that a form has.
func (c *Console) replyOf(f url.Values) (reply agent.Answer, err error) {
	reply = agent.Answer{By: c.By, Why: f.Get("why"), RequestDigest: f.Get("request")}
	if len(reply.Why) > maxWhy {
		return reply, &problem{http.StatusBadRequest, "The reason is too long", "It must be at most 2,000 bytes."}
	}
	switch f.Get("answer") {
	case "approve":
		reply.Approved = true
	case "deny":
	default:
		return reply, &problem{http.StatusBadRequest, "The form has no answer", ""}
	}
	return reply, nil
}

// refused says why the person must not approve here, "" if the person can.
func (c *Console) refused(ctx context.Context, id string, askers []json.RawMessage) string {
	if c.CheckApproval == nil {
		return "this console takes no approvals"
	}
	if err := c.CheckApproval(ctx, id, askers); err != nil {
		return cmp.Or(err.Error(), "it is refused")
	}
	return ""
}

func (c *Console) decide(ctx context.Context, call *revert.Call, reply agent.Answer, f url.Values) error {
	if !reply.Approved {
		return c.Runtime.Answer(ctx, reply)
	}
	if why := c.refused(ctx, reply.Call, call.Asked.Processes); why != "" {
		return &problem{http.StatusForbidden, "A person must approve this call elsewhere", why}
	}
	switch f.Get("scope") {
	case "once":
		reply.Once = true
		return c.Runtime.Answer(ctx, reply)
	case "session", "always":
		span, ok := spans[f.Get("for")]
		if !ok {
			return &problem{http.StatusBadRequest, "The form does not say for how long the approval counts", ""}
		}
		how := ctxperm.RememberScope{Always: f.Get("scope") == "always", SameInput: f.Get("same") == "1", For: span}
		_, err := c.Runtime.RememberApproval(ctx, reply, how)
		return err
	default:
		return &problem{http.StatusBadRequest, "The form does not say what the approval covers", ""}
	}
}
