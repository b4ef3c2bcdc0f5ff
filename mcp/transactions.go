package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// transactionTool is a tool of the server itself, for the transactions of the
// client's session. It is not a tool of the runtime: the journal records what
// it does as such, and it reaches nothing but the session's own transactions.
type transactionTool struct {
	name, description string
	input             *schema.Schema
	hints             sdk.ToolAnnotations
	do                func(ctx context.Context, c *call, in txnInput) (any, error)
}

// txnInput is the input of all transaction tools.
type txnInput struct {
	Txn     string `json:"txn"`
	Call    string `json:"call"`
	Current bool   `json:"current"`
	Page    int    `json:"page"`
}

const (
	argTxn  = `"txn":{"type":"string","minLength":1,"description":"id of a transaction of this session"}`
	argCall = `"call":{"type":"string","minLength":1,"description":"id of a call of this session, as _meta \"remit.dev/call\" of its result says it"}`
)

// transactionTools lists the tools by name.
func transactionTools() []transactionTool {
	no, yes := false, true
	return []transactionTool{
		{
			name: "txn_begin", do: beginTxn, hints: sdk.ToolAnnotations{Title: "Begin a transaction", DestructiveHint: &no, OpenWorldHint: &no},
			description: "Begin a transaction: calls that are kept or reverted together. With current true, later calls that name no transaction belong to it until it ends; else name it in _meta \"remit.dev/txn\" of each call. Without a transaction each call is one by itself, and can still be reverted.",
			input:       mustSchema(`"current":{"type":"boolean","description":"later calls that name no transaction belong to this one"}`),
		},
		{
			name: "txn_commit", do: commitTxn, hints: sdk.ToolAnnotations{Title: "Commit a transaction", DestructiveHint: &no, OpenWorldHint: &yes},
			description: "Commit an open transaction: what it did stays, calls that were held are released. It can still be reverted by txn_revert, as far as its calls can. Without txn it is the current one.",
			input:       mustSchema(argTxn),
		},
		{
			name: "txn_preview", do: previewTxn, hints: sdk.ToolAnnotations{Title: "Preview taking back", ReadOnlyHint: true, DestructiveHint: &no, OpenWorldHint: &no},
			description: "Say what txn_revert would do as things stand, and change nothing. Name a transaction or a call.",
			input:       mustSchema(argTxn + "," + argCall),
		},
		{
			name: "txn_revert", do: revertTxn, hints: sdk.ToolAnnotations{Title: "Take back", DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &yes},
			description: "Take back a transaction, or one call, also after it was committed. What was changed since, also by later calls of yours, is left alone, and the report says so: take later calls back first. Without arguments it is the current transaction.",
			input:       mustSchema(argTxn + "," + argCall),
		},
		{
			name: "txn_status", do: txnStatus, hints: sdk.ToolAnnotations{Title: "Transactions", ReadOnlyHint: true, DestructiveHint: &no, OpenWorldHint: &no},
			description: "Say how a transaction and its calls stand. Without txn it lists the last transactions of this session, newest first, in pages.",
			input:       mustSchema(argTxn + `,"page":{"type":"integer","minimum":1,"maximum":1000,"description":"of the list, from 1"}`),
		},
	}
}

func mustSchema(properties string) *schema.Schema {
	s, err := schema.Compile([]byte(`{"type":"object","additionalProperties":false,"properties":{` + properties + `}}`))
	if err != nil {
		panic("mcp: " + err.Error()) // the schema is a constant
	}
	return s
}

// listed returns the tool as an item of the list.
func (t transactionTool) listed() (listItem, error) {
	object, err := json.Marshal(sdk.Tool{Name: t.name, Title: t.hints.Title, Description: t.description, InputSchema: json.RawMessage(t.input.Canonical()), Annotations: &t.hints})
	return listItem{t.name, object}, err
}

// transactionTool finds a tool by its name.
func (s *Server) transactionTool(name string) (t transactionTool, ok bool) {
	i := slices.IndexFunc(s.own, func(t transactionTool) bool { return t.name == name })
	if i < 0 {
		return t, false
	}
	return s.own[i], true
}

// run runs the tool. It is no call of the runtime and has no outcome: an error
// says what to do.
func (t transactionTool) run(ctx context.Context, c *call) (*wireResult, error) {
	var in txnInput
	err := t.read(c.req.Params.Arguments, &in)
	var value any
	if err == nil {
		value, err = t.do(ctx, c, in)
	}
	r := newObject(c.revision)
	if value != nil {
		data, failed := json.Marshal(value)
		if failed != nil {
			return nil, failed
		}
		r.members["structuredContent"] = data
		r.set("content", []sdk.Content{&sdk.TextContent{Text: string(data)}})
	}
	if err != nil {
		r.set("isError", true)
		if text := err.Error(); value == nil {
			r.set("content", []sdk.Content{&sdk.TextContent{Text: text}})
		} else {
			r.note(metaOutcome, map[string]string{"why": text})
		}
	}
	return r, nil
}

func (t transactionTool) read(args json.RawMessage, into *txnInput) error {
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage(`{}`)
	}
	v, err := canon.Parse(args, canon.DefaultLimits())
	if err == nil {
		err = t.input.Validate(v)
	}
	if err == nil {
		err = v.Decode(into)
	}
	if err != nil {
		return fmt.Errorf("not valid: %w", err)
	}
	return nil
}

// beginResult is the result of txn_begin.
type beginResult struct {
	Txn     string          `json:"txn"`
	State   revert.TxnState `json:"state"`
	Current bool            `json:"current"`
}

func beginTxn(ctx context.Context, c *call, in txnInput) (any, error) {
	if in.Current {
		done, ok := c.st.lockAnswer(markCurrent)
		if !ok {
			return nil, errors.New("another current transaction is being begun; there is one at a time")
		}
		defer done()
	}
	switch now := c.st.currentTxn(); {
	case now.gone:
		return nil, now.err()
	case in.Current && now.txn != "":
		return nil, fmt.Errorf("transaction %s is the current one already; commit or revert it first, or begin this one without current", now.txn)
	}
	tx, err := c.st.begin(ctx, c.s.opts.MaxTxnsPerSession)
	if err != nil {
		return nil, err
	}
	if in.Current {
		if err := c.makeCurrent(ctx, tx); err != nil {
			return nil, errors.Join(err, c.end(ctx, tx, tool.StatusInvalid))
		}
	}
	return beginResult{tx.ID(), revert.TxnOpen, in.Current}, nil
}

// commitResult is the result of txn_commit.
type commitResult struct {
	Txn      string          `json:"txn"`
	State    revert.TxnState `json:"state"`
	Released []outcomeDetail `json:"released,omitempty"` // of the held calls
}

func commitTxn(ctx context.Context, c *call, in txnInput) (any, error) {
	id, err := c.targetTxn(in)
	if err != nil {
		return nil, err
	}
	tx, err := c.st.session.ResumeTxn(ctx, id)
	if err != nil {
		return nil, c.unknownTxn(id, err)
	}
	c.recordCurrentEnd(ctx, id)
	err = tx.Commit(context.WithoutCancel(ctx))
	answer := commitResult{Txn: id, State: revert.TxnCommitted}
	for _, out := range tx.Released() {
		answer.Released = append(answer.Released, details(out))
	}
	switch {
	case err == nil:
		c.st.txnEnded(id)
		return answer, nil
	case errors.Is(err, agent.ErrNotReleased):
		answer.State = revert.TxnOpen
		return answer, err
	case errors.Is(err, tool.ErrDenied): // the policy or a person, so it was reverted
		c.st.txnEnded(id)
	}
	return nil, err
}

// revertTxn never cascades to other transactions, which can belong to another
// session: a dependent call there is a conflict. The policy decides, as an
// agent asks for the revert.
func revertTxn(ctx context.Context, c *call, in txnInput) (any, error) {
	id, err := c.revertTarget(in)
	if err != nil {
		return nil, err
	}
	c.recordCurrentEnd(ctx, id)
	permit := func(_ context.Context, of revert.Call, asking bool) error {
		return c.st.session.MayRevert(ctx, of, asking)
	} // until the client disconnects
	rep, err := c.st.session.Revert(context.WithoutCancel(ctx), id, revert.Options{Permit: permit, PermitMerge: c.st.session.MayMerge})
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		return nil, c.unknownTxn(id, err)
	}
	if rep.State != revert.TxnOpen {
		c.st.txnEnded(rep.Txn)
	}
	return rep, err
}

func previewTxn(ctx context.Context, c *call, in txnInput) (any, error) {
	id, err := c.revertTarget(in)
	if err != nil {
		return nil, err
	}
	rep, err := c.st.session.Preview(ctx, id, revert.Options{Permit: c.st.session.MayRevert, PermitMerge: c.st.session.MayMerge})
	if err != nil {
		return nil, c.unknownTxn(id, err)
	}
	return rep, nil
}

// targetTxn returns the transaction that the arguments name, or the current
// one.
func (c *call) targetTxn(in txnInput) (string, error) {
	if in.Txn != "" {
		return in.Txn, nil
	}
	if now := c.st.currentTxn(); now.txn != "" {
		return now.txn, now.err()
	}
	return "", errors.New(`the session has no current transaction; name one in "txn"`)
}

// revertTarget returns the transaction or call to revert.
func (c *call) revertTarget(in txnInput) (string, error) {
	switch {
	case in.Txn != "" && in.Call != "":
		return "", errors.New(`name a transaction in "txn", or a call in "call", and not both`)
	case in.Call != "":
		return in.Call, nil
	}
	return c.targetTxn(in)
}

// unknownTxn returns the error about an ID. It is the same for a transaction of
// another session and for an unknown one.
func (c *call) unknownTxn(id string, err error) error {
	if errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("%q is no transaction or call of this session; txn_status lists them", id)
	}
	return err
}

// txnState is the state of a transaction.
type txnState struct {
	Txn   string          `json:"txn"`
	State revert.TxnState `json:"state"`
	Calls []txnCallState  `json:"calls"`
}

type txnCallState struct {
	Call     string       `json:"call"`
	Tool     string       `json:"tool"`
	Phase    revert.Phase `json:"phase"`
	Reverted bool         `json:"reverted,omitempty"`
}

// txnStatePage is a page of a list of transactions.
type txnStatePage struct {
	Txns    []txnState `json:"txns"`
	Page    int        `json:"page"`
	HasMore bool       `json:"has_more"`
}

// perPage bounds the transactions on a page.
const perPage = 20

func txnStatus(ctx context.Context, c *call, in txnInput) (any, error) {
	j := c.s.rt.Journal()
	if in.Txn != "" {
		if _, err := c.st.session.FindTxn(ctx, in.Txn); err != nil {
			return nil, c.unknownTxn(in.Txn, err)
		}
		t, err := revert.Load(ctx, j, in.Txn)
		if err != nil {
			return nil, c.unknownTxn(in.Txn, err)
		}
		c.st.markReported(t.ID)
		return stateOf(t), nil
	}
	page := txnStatePage{Txns: []txnState{}, Page: max(in.Page, 1)}
	n := 0
	for e, err := range j.Entries(ctx, journal.Query{Session: c.st.session.ID(), Kinds: []record.Kind{record.KindBegun}, Newest: true, Limit: page.Page*perPage + 1}) {
		if err != nil {
			return nil, err
		}
		if n++; n <= (page.Page-1)*perPage {
			continue
		}
		if len(page.Txns) == perPage {
			page.HasMore = true
			break
		}
		t, err := revert.Load(ctx, j, e.Header.Txn)
		if err != nil {
			return nil, err
		}
		page.Txns = append(page.Txns, stateOf(t))
	}
	return page, nil
}

func stateOf(t *revert.Txn) txnState {
	s := txnState{Txn: t.ID, State: t.State(), Calls: []txnCallState{}}
	for _, c := range t.Calls {
		s.Calls = append(s.Calls, txnCallState{c.Ref.Call, c.Tool.Name, c.Phase, c.IsReverted()})
	}
	return s
}
