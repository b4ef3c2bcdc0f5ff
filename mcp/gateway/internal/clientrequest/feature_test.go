package clientrequest_test

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
	for _, asks := range [][]config.ClientFeature{
		nil, {}, {config.Elicitation}, {config.Sampling}, {config.Roots}, {config.Elicitation, config.Sampling, config.Roots},
	} {
		w := &clientrequest.Forwarder{Server: config.Server{Name: "s", ClientFeatures: asks}}
		for what, caps := range can {
			require.Equal(t, w.Allows(what), w.MayAsk(caps), "%v %s", asks, what)
		}
		require.False(t, w.MayAsk(&sdk.ClientCapabilities{}))
	}
}
