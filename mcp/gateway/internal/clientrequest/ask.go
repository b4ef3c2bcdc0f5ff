package clientrequest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
)

// Ask asks the client of a call, and records that it did.
func (w *Forwarder) Ask(ctx context.Context, f *wire.InFlightCall, what sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	end, err := f.Serialize(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	forward, out := sdk.InputRequestMap{}, sdk.InputResponseMap{}
	first := len(f.Records)
	for _, key := range slices.Sorted(maps.Keys(what)) {
		switch p := what[key].(type) {
		case *sdk.ListRootsParams:
			switch {
			case len(w.Server.Roots) > 0:
				out[key] = &sdk.ListRootsResult{Roots: w.Roots()}
			case w.hasRoots(f):
				if err := w.decide(ctx, f, wire.MethodRoots, config.Roots, "list"); err != nil {
					return nil, err
				}
				forward[key] = p
				f.Records = append(f.Records, wire.ClientRequestRecord{Method: wire.MethodRoots})
			default:
				return nil, cannot("roots")
			}
		case *sdk.ElicitParams:
			q, err := w.elicitation(ctx, f, p)
			if err != nil {
				return nil, err
			}
			forward[key] = q
			f.Records = append(f.Records, wire.ClientRequestRecord{Method: wire.MethodElicit})
		case *sdk.CreateMessageWithToolsParams:
			q, err := w.sampling(ctx, f, p)
			if err != nil {
				return nil, err
			}
			forward[key] = q
			f.Records = append(f.Records, wire.ClientRequestRecord{Method: wire.MethodSample})
		default:
			return nil, cannot("that")
		}
	}
	switch {
	case len(forward) == 0:
		return out, nil
	case len(f.Records) > mostAsked:
		return nil, errMany
	}
	if err := f.Note(ctx, f.Records); err != nil {
		return nil, fmt.Errorf("what is asked cannot be recorded: %w", err)
	}
	said, err := f.Client.Request(ctx, forward)
	if err != nil {
		return nil, err
	}
	for i, key := range slices.Sorted(maps.Keys(forward)) {
		answer, words := answered(forward[key], said[key])
		if answer == nil {
			return nil, fmt.Errorf("the client did not answer what the server asked")
		}
		out[key], f.Records[first+i].Answer = answer, words
	}
	if err := f.Note(ctx, f.Records); err != nil {
		return nil, fmt.Errorf("what was answered cannot be recorded: %w", err)
	}
	return out, nil
}

// answered returns a response if it matches the request, and what the journal
// records of it.
func answered(q sdk.InputRequest, a sdk.InputResponse) (sdk.InputResponse, string) {
	switch q.(type) {
	case *sdk.ElicitParams:
		if a == nil {
			return &sdk.ElicitResult{Action: "cancel"}, "cancel"
		}
		if r, ok := a.(*sdk.ElicitResult); ok {
			return r, canon.Printable(r.Action, 16)
		}
	case *sdk.CreateMessageWithToolsParams:
		if r, ok := a.(*sdk.CreateMessageWithToolsResult); ok {
			return r, "answered"
		}
	case *sdk.ListRootsParams:
		if r, ok := a.(*sdk.ListRootsResult); ok {
			return r, "answered"
		}
	}
	return nil, ""
}
