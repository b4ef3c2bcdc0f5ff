package clientrequest

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/perm"
)

// Each client request of a server is an access of the call, which the policy
// decides when the server asks: it can lead the user to a page, it costs model
// usage, and it can make the model reveal what it knows.

// notAsked is the recorded answer of a client request that the policy denied.
const notAsked = "denied"

// Needs returns the accesses that a server's tools need for client requests.
// The policy decides each request when the server sends it.
func (w *Forwarder) Needs() (all []perm.ResourceAccess) {
	for _, a := range []config.ClientFeature{config.Elicitation, config.Sampling, config.Roots} {
		if w.Allows(a) {
			all = append(all, perm.Access(perm.AskClient, "mcp://"+w.Server.Name+"/"+string(a)+"/*"))
		}
	}
	return all
}

// Permitted returns a function that evaluates the policy for client requests,
// once for each kind.
func Permitted(tc ctxperm.ToolContext) func(ctx context.Context, a perm.ResourceAccess) error {
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

// Error names the client feature and the reason.
func (e *deniedError) Error() string {
	return fmt.Sprintf("the request for %s is refused: %v", e.what, e.why)
}

// decide evaluates the policy. The journal records a denial too.
func (w *Forwarder) decide(ctx context.Context, f *wire.InFlightCall, method string, a config.ClientFeature, how string) error {
	if len(f.Records) >= mostAsked { // the journal records each
		return errMany
	}
	r, err := perm.KindMCP.Resource(w.Server.Name, string(a), how)
	switch {
	case err != nil:
	case f.Permit == nil:
		err = errors.New("no policy here decides what a server may ask")
	default:
		err = f.Permit(ctx, perm.Access(perm.AskClient, r.String()))
	}
	if err == nil {
		return nil
	}
	w.Log.Warn("a request of a server to its client is refused", "server", w.Server.Name, "what", string(a)+"/"+how, "why", err)
	f.Records = append(f.Records, wire.ClientRequestRecord{Method: method, Answer: notAsked})
	return errors.Join(&deniedError{what: string(a), why: err}, f.Note(ctx, f.Records))
}

var errMany = fmt.Errorf("the server asked more than %d times in one call", mostAsked)
