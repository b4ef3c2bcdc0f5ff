package clientrequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
)

// PageRequired returns the error of a call for which the user must open a page
// first. Its pages are client requests like any other.
func (w *Forwarder) PageRequired(ctx context.Context, f *wire.InFlightCall, e *jsonrpc.Error) error {
	if e.Code != sdk.CodeURLElicitationRequired {
		return &wire.ProtocolError{Server: w.Server.Name, Cause: e}
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > mostAsked {
		return fmt.Errorf("server %s wants a page to be opened first, and does not say which", w.Server.Name)
	}
	end, err := f.Serialize(context.WithoutCancel(ctx)) // it is held only briefly: the call has its response
	if err != nil {
		return err
	}
	defer end()
	for i, p := range data.Elicitations {
		err := errors.New("it is not by a URL")
		if p != nil && p.Mode == modeURL {
			data.Elicitations[i], err = w.elicitation(ctx, f, p)
		}
		if err != nil {
			return fmt.Errorf("server %s wants a page to be opened first, which cannot be asked for: %w", w.Server.Name, err)
		}
		f.Records = append(f.Records, wire.ClientRequestRecord{Method: wire.MethodElicit})
	}
	if err := f.Note(ctx, f.Records); err != nil {
		return fmt.Errorf("what is asked cannot be recorded: %w", err)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return &wire.ProtocolError{Server: w.Server.Name, Cause: &jsonrpc.Error{Code: e.Code, Message: canon.Printable(e.Message, 4<<10), Data: raw}}
}
