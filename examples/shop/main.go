// Command shop is an agent on one page: five tools from the methods of a type,
// a policy, and the loop of a model.
package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

//go:embed policy.rego
var rules embed.FS

// shop has the methods that the model calls.
type shop struct{ stock map[string]int }

type (
	nothing struct{}
	item    struct {
		Name   string `json:"name" jsonschema:"name of the article"`
		Pieces int    `json:"pieces,omitempty" jsonschema:"number of pieces; default 1"`
	}
	note struct {
		Text string `json:"text" jsonschema:"the whole note"`
	}
)

func (s *shop) List(context.Context, nothing) (map[string]int, error) { return s.stock, nil }

func (s *shop) Count(_ context.Context, in item) (int, error) { return s.stock[in.Name], nil }

func (s *shop) Order(_ context.Context, in item) (string, error) {
	return fmt.Sprintf("the supplier sends %d of %s", max(1, in.Pieces), in.Name), nil
}

func (*shop) ReadNote(ctx context.Context, tc ctxperm.ToolContext, _ nothing) (string, error) {
	f, err := files.Open(tc, "shop")
	if err != nil {
		return "", err
	}
	text, err := f.ReadFile(ctx, "note.txt")
	return string(text), err
}

func (*shop) WriteNote(ctx context.Context, tc ctxperm.ToolContext, in note) (string, error) {
	f, err := files.Open(tc, "shop")
	if err != nil {
		return "", err
	}
	return "written", f.Write(ctx, "note.txt", []byte(in.Text), files.WriteOptions{})
}

// answer asks the model at a URL. It reverts what the model did if there is no answer.
func (s *shop) answer(ctx context.Context, dir, url, question string) (string, error) {
	read := []perm.ResourceAccess{perm.Access(perm.Read, "file://shop/note.txt")}
	write := []perm.ResourceAccess{perm.Access(perm.Write, "file://shop/note.txt")}
	tools, err := tool.Bind(s, map[string]tool.Spec{
		"List":      {Description: "List the stock.", EffectClass: effect.Pure},
		"Count":     {Description: "Count an article.", EffectClass: effect.Pure},
		"Order":     {Description: "Order an article.", EffectClass: effect.Pivot},
		"ReadNote":  {Description: "Read the note.", EffectClass: effect.Pure, Confinement: tool.Handles, Needs: read},
		"WriteNote": {Description: "Replace the note.", EffectClass: effect.Reversible, Confinement: tool.Handles, Needs: write},
	})
	if err != nil {
		return "", err
	}
	policy, err := rego.Load(rego.Source{FS: rules})
	if err != nil {
		return "", err
	}
	rt, err := agent.New(agent.Tools(tools...), agent.Root("shop", dir), agent.Policy(policy))
	if err != nil {
		return "", err
	}
	defer rt.Close()
	session, err := rt.Session(ctx, perm.Principal{ID: "clerk"})
	if err != nil {
		return "", err
	}
	adapter, err := wire.New(wire.Anthropic, tools...)
	if err != nil {
		return "", err
	}
	loop := agent.Loop{Adapter: adapter, CallModel: func(ctx context.Context, r agent.ModelRequest) (json.RawMessage, error) {
		return send(ctx, url, r)
	}}
	var c agent.Conversation
	_, err = session.Update(ctx, func(tx *agent.Txn) (err error) {
		c, err = loop.Ask(ctx, tx, c, question)
		return err
	})
	return c.Answer, err
}

// send sends one request. That of a real provider also has a key.
func send(ctx context.Context, url string, r agent.ModelRequest) (json.RawMessage, error) {
	body, err := json.Marshal(map[string]any{"model": "claude", "max_tokens": 1000, "messages": r.Messages, "tools": r.Tools["tools"]})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // only read
	return io.ReadAll(response.Body)
}
