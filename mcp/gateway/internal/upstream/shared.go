package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/gateway/internal/pin"
	"github.com/remit-dev/remit/mcp/gateway/internal/program"
)

// Shared is what the upstreams of one gateway share.
type Shared struct {
	Log  *slog.Logger
	Life context.Context //nolint:containedctx // ends when the gateway closes, and with it every attempt to connect
	Pins *pin.Store

	Env       func(string) (string, bool) // variables of servers by command
	Guard     *program.Guard
	Base      *http.Transport                            // base of each connection's own transport
	Authorize func(server, url string) auth.OAuthHandler // nil: servers by URL get the configured headers alone

	Roots                    map[string]string // folders of the runtime's roots, by name
	StartTimeout, MaxBackoff time.Duration
	Identity                 *sdk.Implementation // name and version that servers get of the gateway

	// Changed takes over what the servers declare now.
	Changed func() error
	// Updated receives each change of a subscribed resource.
	OnResourceUpdated func(uri string)

	introduced sync.Once
	intro      json.RawMessage
}

// Now returns the time.
func (*Shared) Now() time.Time { return time.Now() }

// Closed returns an error when the gateway is closed.
func (h *Shared) Closed() error { return context.Cause(h.Life) }

// introduction returns the identity as JSON, for each request of the newest
// revision.
func (h *Shared) introduction() json.RawMessage {
	h.introduced.Do(func() {
		raw, err := json.Marshal(h.Identity)
		if err != nil {
			raw = []byte("{}")
		}
		h.intro = raw
	})
	return h.intro
}
