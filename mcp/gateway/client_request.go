package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/perm"
)

// Each client request of a server is an access of the call, which the policy
// decides when the server asks: it can lead the user to a page, it costs model
// usage, and it can make the model reveal what it knows.

// The modes of elicitation.
const (
	modeForm = "form"
	modeURL  = "url" // a page of the server's choice; the client does not see its content
)

// notAsked is the recorded answer of a client request that the policy denied.
const notAsked = "denied"

// needs returns the accesses that a server's tools need for client requests.
// The policy decides each request when the server sends it.
func (u *upstream) needs() (all []perm.ResourceAccess) {
	for _, a := range []config.ClientFeature{config.Elicitation, config.Sampling, config.Roots} {
		if u.may(a) {
			all = append(all, perm.Access(perm.AskClient, "mcp://"+u.cfg.Name+"/"+string(a)+"/*"))
		}
	}
	return all
}

// permitted returns a function that evaluates the policy for client requests,
// once for each kind.
func permitted(tc ctxperm.ToolContext) func(ctx context.Context, a perm.ResourceAccess) error {
	return func(ctx context.Context, a perm.ResourceAccess) error {
		p, err := ctxperm.Authorize(ctx, tc, a)
		if err == nil {
			p.End()
		}
		return err
	}
}

// deniedError says that the gateway did not ask the client. The call gets the
// reason; the server does not. It is not a denial of the call, which the server
// is processing: the server's response says what happened, or the effect is
// unknown.
type deniedError struct {
	what string
	why  error
}

func (e *deniedError) Error() string { return fmt.Sprintf("nobody is asked for %s: %v", e.what, e.why) }

// elicitation asks the user, if the client supports it and the policy permits
// it.
func (u *upstream) elicitation(ctx context.Context, f *wire.InFlightCall, p *sdk.ElicitParams) (*sdk.ElicitParams, error) {
	mode := p.Mode
	if mode == "" && p.URL == "" {
		mode = modeForm
	}
	switch {
	case !u.may(config.Elicitation) || caps(f).Elicitation == nil:
		return nil, cannot(string(config.Elicitation))
	case mode != modeForm && mode != modeURL:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("elicitation has the mode %q or %q", modeForm, modeURL)}
	case !u.elicits(f, mode):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the client does not support elicitation of mode %q", mode)}
	case mode == modeURL:
		if err := checkPage(p); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
	case p.URL != "" || p.ElicitationID != "":
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "an elicitation by a form names no URL"}
	}
	if err := u.decide(ctx, f, wire.MethodElicit, config.Elicitation, mode); err != nil {
		return nil, err
	}
	return u.signed(p, mode), nil
}

// sampling asks the model, if the client supports it and the policy permits it.
func (u *upstream) sampling(ctx context.Context, f *wire.InFlightCall, p *sdk.CreateMessageWithToolsParams) (*sdk.CreateMessageWithToolsParams, error) {
	how := "text"
	if len(p.Tools) > 0 {
		how = "tools"
	}
	switch {
	case !u.samples(f):
		return nil, cannot(string(config.Sampling))
	case how == "tools" && caps(f).Sampling.Tools == nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the client does not support tools in sampling"}
	}
	if err := u.decide(ctx, f, wire.MethodSample, config.Sampling, how); err != nil {
		return nil, err
	}
	return alone(p), nil
}

// decide evaluates the policy. The journal records a denial too.
func (u *upstream) decide(ctx context.Context, f *wire.InFlightCall, method string, a config.ClientFeature, how string) error {
	if len(f.Records) >= mostAsked { // the journal records each
		return errMany
	}
	r, err := perm.KindMCP.Resource(u.cfg.Name, string(a), how)
	switch {
	case err != nil:
	case f.Permit == nil:
		err = errors.New("nobody decides here what a server may ask")
	default:
		err = f.Permit(ctx, perm.Access(perm.AskClient, r.String()))
	}
	if err == nil {
		return nil
	}
	u.g.log.Warn("what a server asks its client is asked of nobody", "server", u.cfg.Name, "what", string(a)+"/"+how, "why", err)
	f.Records = append(f.Records, wire.ClientRequestRecord{Method: method, Answer: notAsked})
	return errors.Join(&deniedError{what: string(a), why: err}, f.Note(ctx, f.Records))
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

// required returns the error of a call for which the user must open a page
// first. Its pages are client requests like any other.
func (u *upstream) required(ctx context.Context, f *wire.InFlightCall, e *jsonrpc.Error) error {
	if e.Code != sdk.CodeURLElicitationRequired {
		return &wire.ProtocolError{Server: u.cfg.Name, Cause: e}
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > mostAsked {
		return fmt.Errorf("server %s wants a page to be opened first, and does not say which", u.cfg.Name)
	}
	end, err := f.Serialize(context.WithoutCancel(ctx)) // it is held only briefly: the call has its response
	if err != nil {
		return err
	}
	defer end()
	for i, p := range data.Elicitations {
		err := errors.New("it is not by a URL")
		if p != nil && p.Mode == modeURL {
			data.Elicitations[i], err = u.elicitation(ctx, f, p)
		}
		if err != nil {
			return fmt.Errorf("server %s wants a page to be opened first, which nobody is asked for: %w", u.cfg.Name, err)
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
	return &wire.ProtocolError{Server: u.cfg.Name, Cause: &jsonrpc.Error{Code: e.Code, Message: canon.Printable(e.Message, 4<<10), Data: raw}}
}
