package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// ApprovalMode selects the approver of calls for which the policy asks. In
// every mode the journal records the approval request and its answer.
type ApprovalMode uint8

// The approval modes. The runtime needs agent.SuspendForApproval; without it,
// the runtime denies a call that needs approval.
const (
	// ApproveAtClient asks the user through the client, if the client supports
	// elicitation. The client vouches for the answer: the program that runs the
	// agent could approve calls itself.
	ApproveAtClient ApprovalMode = iota
	// ApproveOutOfBand lets the call wait for an answer through
	// agent.Runtime.Answer, such as by remit approve.
	ApproveOutOfBand
)

// approvalRequest is the approval request of a pending call.
type approvalRequest struct {
	txn  *revert.Txn
	call *revert.Call
}

func (s *Server) question(ctx context.Context, id string) (*approvalRequest, error) {
	t, c, err := revert.LoadCall(ctx, s.rt.Journal(), id)
	if err != nil {
		return nil, err
	}
	if c.Asked == nil {
		return nil, fmt.Errorf("call %s asked nothing", id)
	}
	return &approvalRequest{t, c}, nil
}

func (q *approvalRequest) waits() bool {
	return q.call.Phase == revert.PhasePending && q.txn.End == "" && !q.txn.Aborting
}

// The keys of the elicitation and of its response.
const (
	keyApproval = "approval"
	keyApprove  = "approve"
	keyWhy      = "why"
)

// maxShown bounds the part of an input that a form shows. The form says that it
// omits the rest.
const maxShown = 8 << 10

// form returns the approval request as an elicitation. Out is the outcome of
// the call; its input is redacted.
func (q *approvalRequest) form(out tool.Outcome) *sdk.ElicitParams {
	var text strings.Builder
	fmt.Fprintf(&text, "The agent asks to run %s.\n", q.call.Tool.Name)
	for _, a := range q.call.Asked.Access {
		fmt.Fprintf(&text, "It would %s %s\n", a.Action, canon.Printable(a.Resource, 1<<10))
	}
	if before := q.call.Asked.Earlier(); before != "" {
		fmt.Fprintf(&text, "Again: %s.\n", canon.Printable(before, 1<<10))
	}
	var d perm.DecisionRecord
	if canon.Decode(q.call.Asked.Decision, &d) == nil {
		for _, r := range d.Reasons {
			fmt.Fprintf(&text, "Asked because: %s\n", r.Text)
		}
	}
	if len(out.Input) > 0 {
		fmt.Fprintf(&text, "With: %s\n", shownInput(out.Input))
	}
	if q.call.Asked.Preview != "" {
		fmt.Fprintf(&text, "It would change:\n%s\n", canon.Printable(q.call.Asked.Preview, maxShown))
	}
	text.WriteString("It is call " + q.call.Ref.Call + ".")
	return &sdk.ElicitParams{Mode: "form", Message: text.String(), RequestedSchema: map[string]any{
		"type": "object",
		"properties": map[string]any{
			keyApprove: map[string]any{"type": "boolean", "title": "Approve", "description": "let this call run, once"},
			keyWhy:     map[string]any{"type": "string", "title": "Why", "description": "for the record; may be left out"},
		},
		"required": []string{keyApprove},
	}}
}

func shownInput(in []byte) string {
	text := canon.Printable(string(in), maxShown)
	if len(in) > maxShown {
		text += fmt.Sprintf(" … %d bytes in all, which are on the journal", len(in))
	}
	return text
}

// mostAsked bounds how often one request asks the user: the policy can ask
// about the changes of a program after it asked about the program.
const mostAsked = 4

// ask responds to a pending call, by the capabilities of its client.
func (c *call) ask(ctx context.Context, tx *agent.Txn, alone bool, out tool.Outcome) (*wireResult, error) {
	q, err := c.s.question(ctx, out.Call)
	if err != nil {
		c.s.opts.Log.Warn("what a call asks cannot be read", "call", out.Call, "error", err)
		return c.result(out), nil
	}
	c.st.addPending(pendingApproval{txn: q.txn.ID, call: out.Call, tool: q.call.Tool.Name, input: string(q.call.Asked.Input), alone: alone})
	switch elicits := c.elicits(); {
	case c.mayTask && (c.alwaysTask() || !elicits):
		return c.created(q), nil
	case elicits && c.revision >= stateless:
		return c.inputRequired(q, alone, out)
	case elicits && c.asked < mostAsked:
		c.asked++
		return c.elicit(ctx, tx, alone, q, out)
	}
	return c.result(out), nil
}

// elicits reports whether the server asks the user at the client.
func (c *call) elicits() bool {
	can := c.caps
	return c.s.opts.OnAsk == ApproveAtClient && can != nil && elicits(can.Elicitation, false)
}

// inputRequired returns a result that asks: the client repeats the call with
// the answer.
func (c *call) inputRequired(q *approvalRequest, alone bool, out tool.Outcome) (*wireResult, error) {
	state, err := c.s.sealer.seal(q.claimOf(alone))
	if err != nil {
		return nil, err
	}
	r := newObject(c.revision)
	r.set("resultType", "input_required")
	r.set("inputRequests", sdk.InputRequestMap{keyApproval: q.form(out)})
	r.set("requestState", state)
	r.note(metaStatus, out.Status)
	r.note(metaCall, out.Call)
	r.note(metaTxn, out.Txn)
	return r, nil
}

// elicit asks the client while the request continues.
func (c *call) elicit(ctx context.Context, tx *agent.Txn, alone bool, q *approvalRequest, out tool.Outcome) (*wireResult, error) {
	asking, cancel := context.WithDeadline(ctx, q.call.Asked.Expires)
	defer cancel()
	said, err := c.req.Session.Elicit(asking, q.form(out))
	if err != nil {
		c.s.opts.Log.Info("no approver answered", "call", out.Call, "error", err)
		return c.result(out), nil
	}
	if answered, err := c.acceptResponses(ctx, q, said); err != nil {
		return c.refused(err), nil
	} else if !answered {
		return c.result(out), nil
	}
	out, _ = tx.Resume(ctx, out.Call, c.listeners()...)
	return c.finish(ctx, tx, alone, out)
}

// askInside asks the client for the approval that a running call waits for. The
// journal holds the approval request too, so another approver can answer it.
// The key is random, so that no client knows it in advance: an answer must not
// arrive before the client saw the form.
func (c *call) askInside(ctx context.Context, asked ctxperm.ApprovalRequest) {
	if !c.elicits() || clientctx.Of(ctx) == nil {
		return
	}
	q, err := c.s.question(ctx, asked.Call)
	var said sdk.InputResponseMap
	key := keyApproval + "-" + rand.Text()
	if err == nil {
		said, err = Client{c}.Request(ctx, sdk.InputRequestMap{key: q.form(tool.Outcome{Input: asked.Input})})
	}
	if err == nil {
		answer, _ := said[key].(*sdk.ElicitResult)
		_, err = c.acceptResponses(ctx, q, answer)
	}
	if err != nil && ctx.Err() == nil {
		c.s.opts.Log.Info("the client did not answer the request of a running call", "call", asked.Call, "error", err)
	}
}

// redeem takes the answer that a repeated call contains, if the call is the one
// that asked and its approval request is unchanged.
func (c *call) redeem(ctx context.Context) (*wireResult, error) {
	held, err := c.s.sealer.open(c.req.Params.RequestState, c.st.session.ID(), time.Now())
	switch {
	case errors.Is(err, errClaim):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	case err != nil:
		return c.refused(err), nil
	}
	done, ok := c.st.lockAnswer(held.Call)
	if !ok {
		return c.refused(errors.New("an answer to this call is being taken already")), nil
	}
	defer done()
	q, err := c.s.question(ctx, held.Call)
	switch {
	case err != nil || !q.waits():
		return c.refused(errors.New("the call that this answers does not wait any more; an answer counts once")), nil
	case held != q.claimOf(held.Exclusive) || !c.isOf(q):
		return c.refused(errClaim), nil
	}
	tx, err := c.st.session.ResumeTxn(ctx, held.Txn)
	if err != nil {
		return c.refused(fmt.Errorf("the transaction of the call is not open any more: %w", err)), nil
	}
	said, _ := c.req.Params.InputResponses[keyApproval].(*sdk.ElicitResult)
	if c.s.opts.OnAsk != ApproveAtClient {
		said = nil // an earlier run of the server asked; the client is no longer the approver
	}
	if _, err := c.acceptResponses(ctx, q, said); err != nil {
		return c.refused(err), nil
	}
	out, _ := tx.Resume(ctx, held.Call, c.listeners()...)
	if out.Status == tool.StatusPending && said != nil && said.Action == "cancel" {
		return c.result(out), nil // the user cancelled and must not be asked again
	}
	return c.finish(ctx, tx, held.Exclusive, out)
}

// isOf reports whether the request repeats the call of q: the same tool, with
// the same declaration, and the same arguments.
func (c *call) isOf(q *approvalRequest) bool {
	full, err := c.tool.NormalizeInput(c.input)
	return err == nil && c.tool.Name() == q.call.Tool.Name && c.tool.Digest() == q.call.Asked.Tool.Digest && string(full) == string(q.call.Asked.Input)
}

// answered reports whether the current approval request has an answer.
func (q *approvalRequest) answered() bool {
	return q.call.Answered != nil && q.call.Asked != nil && q.call.Answered.Digest == q.call.Asked.Digest
}

// acceptResponses records the answer of the user. It returns false if the user gave none.
// An answer that another approver gave meanwhile counts.
func (c *call) acceptResponses(ctx context.Context, q *approvalRequest, said *sdk.ElicitResult) (answered bool, err error) {
	if q.answered() {
		return true, nil
	}
	if said == nil || said.Action == "cancel" {
		return false, nil
	}
	approve, _ := said.Content[keyApprove].(bool)
	why, _ := said.Content[keyWhy].(string)
	err = c.s.rt.Answer(context.WithoutCancel(ctx), agent.Answer{
		Call: q.call.Ref.Call, Approved: said.Action == "accept" && approve, By: c.person(), Why: canon.Printable(why, 1<<10), RequestDigest: q.call.Asked.Digest,
	})
	if now, lost := c.s.question(ctx, q.call.Ref.Call); err != nil && lost == nil && now.answered() {
		return true, nil // another approver rejected the call meanwhile
	}
	return true, err
}

// person returns the approver at the client. The name is the one that the
// client reports.
func (c *call) person() string {
	name := "an MCP client"
	if c.client != nil && c.client.Name != "" {
		name = canon.Printable(strings.Join(strings.Fields(c.client.Name), " "), 64)
	}
	return "person at " + name
}
