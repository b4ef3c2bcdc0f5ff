package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mayBeAsked reports whether this tool can send requests to the client.
func (c *call) mayBeAsked() bool {
	return c.caps != nil && (c.caps.Elicitation != nil || c.caps.Sampling != nil || c.caps.RootsV2 != nil) &&
		(c.s.requester == nil || c.s.requester.MayRequestClient(c.tool, c.caps))
}

// directRequester sends requests to a client of an older revision, whose own
// request continues meanwhile.
type directRequester struct{ c *call }

// Capabilities returns the capabilities that the client reports.
func (a directRequester) Capabilities() *sdk.ClientCapabilities { return a.c.caps }

// Request sends the requests one after the other.
func (a directRequester) Request(ctx context.Context, what sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	out := sdk.InputResponseMap{}
	for _, key := range slices.Sorted(maps.Keys(what)) {
		var err error
		switch p := what[key].(type) {
		case *sdk.ElicitParams:
			out[key], err = a.c.req.Session.Elicit(ctx, p)
		case *sdk.CreateMessageWithToolsParams:
			out[key], err = a.c.req.Session.CreateMessageWithTools(ctx, p)
		case *sdk.ListRootsParams:
			out[key], err = a.c.req.Session.ListRoots(ctx, p)
		default:
			err = fmt.Errorf("the client cannot be asked for %T", p)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
