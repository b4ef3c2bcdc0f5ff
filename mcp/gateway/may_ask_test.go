package gateway

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/clientrequest"
)

// TestMayAsk: a server may ask a client for what its configuration lets it and the client can.
func TestMayAsk(t *testing.T) {
	can := map[config.ClientFeature]*sdk.ClientCapabilities{
		config.Elicitation: {Elicitation: &sdk.ElicitationCapabilities{}}, config.Sampling: {Sampling: &sdk.SamplingCapabilities{}}, config.Roots: {RootsV2: &sdk.RootCapabilities{}},
	}
	for _, asks := range [][]config.ClientFeature{nil, {}, {config.Elicitation}, {config.Sampling}, {config.Roots}, {config.Elicitation, config.Sampling, config.Roots}} {
		u := &upstream{asks: &clientrequest.Forwarder{Server: config.Server{Name: "s", ClientFeatures: asks}}}
		g := &Gateway{}
		g.seen.Store(&toolSnapshot{of: map[string]*upstream{"": u}})
		for what, caps := range can {
			require.Equal(t, u.asks.Allows(what), g.mayAsk("", caps), "%v %s", asks, what)
		}
		require.False(t, g.mayAsk("", &sdk.ClientCapabilities{}))
		require.True(t, g.mayAsk("other", &sdk.ClientCapabilities{}))
	}
}
