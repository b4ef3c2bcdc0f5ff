package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
)

// Bounds on the definitions of a server.
const (
	maxPages  = 100
	maxTools  = 1000 // and prompts, and resources
	maxShapes = 100  // resource templates
	maxListed = 16 << 20
)

// list reads the definitions of a server, and its identity.
func (u *Upstream) list(ctx context.Context, s *Conn) error {
	d := definition.Declared{Known: true}
	caps := &sdk.ServerCapabilities{}
	if r := s.cs.InitializeResult(); r != nil {
		if r.ServerInfo != nil {
			d.Identity = canon.Printable(r.ServerInfo.Name, 256)
		}
		if r.Capabilities != nil {
			caps = r.Capabilities
		}
	}
	var err error
	if d.Defs, err = u.definitions(ctx, s, definition.Tools); err != nil {
		return fmt.Errorf("its tools: %w", err)
	}
	// The gateway serves the server without the kinds that it cannot read.
	without := func(k definition.Kind, err error) {
		u.Shared.Log.Warn("what a server has to be read is left out", "server", u.Server.Name, "what", k, "error", err)
	}
	d.Completes = caps.Completions != nil
	if d.Prompts = caps.Prompts != nil && !u.Server.NoPrompts; d.Prompts {
		u.add(ctx, s, definition.Prompts, &d, without)
	}
	if d.Reads = caps.Resources != nil && !u.Server.NoResources; d.Reads {
		u.add(ctx, s, definition.Templates, &d, without)
		if d.Resources, err = u.resources(ctx, s); err != nil {
			d.Resources = nil
			without(definition.Resources, err)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	u.settle(s, d)
	return nil
}

// add adds the definitions of one kind.
func (u *Upstream) add(ctx context.Context, s *Conn, k definition.Kind, d *definition.Declared, without func(definition.Kind, error)) {
	defs, err := u.definitions(ctx, s, k)
	if err != nil {
		d.Partial = true
		without(k, err)
		return
	}
	d.Defs = append(d.Defs, defs...)
}

func (u *Upstream) definitions(ctx context.Context, s *Conn, k definition.Kind) (defs []definition.Definition, err error) {
	there := map[string]bool{}
	return defs, s.pages(ctx, k, func(one json.RawMessage) error {
		d, err := definition.Parse(k, one)
		switch {
		case err != nil:
			u.Shared.Log.Warn("a definition is left out: it is not valid", "server", u.Server.Name, "what", canon.Printable(d.Key(), 128), "error", err)
			return nil
		case there[d.Name]:
			return fmt.Errorf("it has two %s named %q", k, d.Name)
		}
		there[d.Name] = true
		defs = append(defs, d)
		return nil
	})
}

func (u *Upstream) resources(ctx context.Context, s *Conn) (all []definition.Resource, err error) {
	there := map[string]bool{}
	return all, s.pages(ctx, definition.Resources, func(one json.RawMessage) error {
		var head struct {
			URI  string `json:"uri"`
			Name string `json:"name"`
		}
		if len(one) > definition.MaxDefinition || json.Unmarshal(one, &head) != nil || !definition.PlainName(head.URI) || there[head.URI] {
			u.Shared.Log.Warn("a resource is left out: it is not valid, or there twice", "server", u.Server.Name, "uri", canon.Printable(head.URI, 128))
			return nil
		}
		there[head.URI] = true
		all = append(all, definition.Resource{URI: head.URI, Raw: one})
		return nil
	})
}

func (u *Upstream) settle(s *Conn, d definition.Declared) {
	digests := map[string]string{}
	for _, def := range d.Defs {
		digests[def.Key()] = def.Digest
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.has = d
	s.mu.Lock()
	defer s.mu.Unlock()
	s.digest = digests
}

// pages reads a list, page by page.
func (s *Conn) pages(ctx context.Context, k definition.Kind, each func(one json.RawMessage) error) error {
	cursor, n, size := "", 0, 0
	most := maxTools
	if k == definition.Templates {
		most = maxShapes
	}
	for range maxPages {
		page, next, err := s.page(ctx, k, cursor)
		var said *jsonrpc.Error
		if errors.As(err, &said) && said.Code == jsonrpc.CodeMethodNotFound && n == 0 {
			return nil // it has none, despite its capabilities
		}
		if err != nil {
			return err
		}
		for _, one := range page {
			if size += len(one); size > maxListed {
				return fmt.Errorf("its list is longer than %d MiB", maxListed>>20)
			}
			if err := each(one); err != nil {
				return err
			}
		}
		if n += len(page); n > most {
			return fmt.Errorf("it has more than %d %s", most, k)
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
	return fmt.Errorf("its list has more than %d pages", maxPages)
}

func (s *Conn) page(ctx context.Context, k definition.Kind, cursor string) (page []json.RawMessage, next string, err error) {
	ctx, c := wire.WithResponseSlot(ctx, nil)
	switch k {
	case definition.Prompts:
		_, err = s.cs.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
	case definition.Templates:
		_, err = s.cs.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
	case definition.Resources:
		_, err = s.cs.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
	default:
		_, err = s.cs.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
	}
	list, refusal := c.Received()
	switch {
	case refusal != nil:
		return nil, "", refusal
	case list == nil && err == nil:
		return nil, "", errors.New("the list is lost")
	case list == nil:
		return nil, "", err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(list, &members); err != nil {
		return nil, "", errors.New("the list is none")
	}
	for name, into := range map[string]any{string(k): &page, "nextCursor": &next} {
		if raw, there := members[name]; there && json.Unmarshal(raw, into) != nil {
			return nil, "", errors.New("the list is none")
		}
	}
	return page, next, nil
}
