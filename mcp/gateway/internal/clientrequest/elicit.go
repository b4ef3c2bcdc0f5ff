package clientrequest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
)

// elicitation asks the user, if the client supports it and the policy permits
// it.
func (w *Forwarder) elicitation(ctx context.Context, f *wire.InFlightCall, p *sdk.ElicitParams) (*sdk.ElicitParams, error) {
	mode := p.Mode
	if mode == "" && p.URL == "" {
		mode = modeForm
	}
	switch {
	case !w.Allows(config.Elicitation) || caps(f).Elicitation == nil:
		return nil, cannot(string(config.Elicitation))
	case mode != modeForm && mode != modeURL:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("elicitation has the mode %q or %q", modeForm, modeURL)}
	case !w.elicits(f, mode):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the client does not support elicitation of mode %q", mode)}
	case mode == modeURL:
		if err := checkPage(p); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
	case p.URL != "" || p.ElicitationID != "":
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "an elicitation by a form names no URL"}
	}
	if err := w.decide(ctx, f, wire.MethodElicit, config.Elicitation, mode); err != nil {
		return nil, err
	}
	return w.signed(p, mode), nil
}

// sampling asks the model, if the client supports it and the policy permits it.
func (w *Forwarder) sampling(ctx context.Context, f *wire.InFlightCall, p *sdk.CreateMessageWithToolsParams) (*sdk.CreateMessageWithToolsParams, error) {
	how := "text"
	if len(p.Tools) > 0 {
		how = "tools"
	}
	switch {
	case !w.samples(f):
		return nil, cannot(string(config.Sampling))
	case how == "tools" && caps(f).Sampling.Tools == nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the client does not support tools in sampling"}
	}
	if err := w.decide(ctx, f, wire.MethodSample, config.Sampling, how); err != nil {
		return nil, err
	}
	return alone(p), nil
}

// maxPage bounds the length of a page's URL, in bytes.
const maxPage = 8 << 10

// checkPage rejects a URL whose destination the user could not recognize, or
// that does something other than open a page. Pages of this machine can be
// unencrypted.
func checkPage(p *sdk.ElicitParams) error {
	link, err := url.Parse(p.URL)
	switch {
	case p.ElicitationID == "" || p.RequestedSchema != nil:
		return errors.New("an elicitation by a URL has an elicitationId, and no form")
	case len(p.URL) > maxPage:
		return fmt.Errorf("the URL of an elicitation has at most %d bytes", maxPage)
	case err != nil || link.Host == "" || link.Opaque != "" || !visible(p.URL):
		return errors.New("the URL of an elicitation is none")
	case link.User != nil:
		return errors.New("the URL of an elicitation names a user, which hides the host that it leads to")
	case link.Scheme != "https" && (link.Scheme != "http" || !loopback(link.Hostname())):
		return errors.New("the URL of an elicitation is one of https")
	}
	return nil
}

// visible reports whether a reader can distinguish all characters of a text.
func visible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// signed returns an elicitation with the name of the server: the client sees
// one server, and the user must know which one asks.
func (w *Forwarder) signed(p *sdk.ElicitParams, mode string) *sdk.ElicitParams {
	signed := *p
	signed.Mode, signed.Message = mode, fmt.Sprintf("Server %s asks: %s", w.Server.Name, p.Message)
	return &signed
}

// alone returns a sampling request without context of the client: for the
// client, all upstreams are one server.
func alone(p *sdk.CreateMessageWithToolsParams) *sdk.CreateMessageWithToolsParams {
	if p.IncludeContext == "" {
		return p
	}
	only := *p
	only.IncludeContext = "none"
	return &only
}
