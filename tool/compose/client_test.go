package compose_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
)

// What a part wants of a session the whole wants: nobody comes to a tool through another.
func TestTheWholeWantsWhatItsPartsWant(t *testing.T) {
	part := func(name string, confidence int, capability string) tool.Tool {
		tl, err := tool.Create(name, "Answers.", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
		require.NoError(t, err)
		tl, err = tl.With(func(s *tool.Spec) { s.Confidence, s.Capabilities = confidence, []string{capability} })
		require.NoError(t, err)
		return tl
	}
	whole, err := compose.Chain(compose.About{Name: "both", Description: "One, then the other."},
		compose.Part{Tool: part("first", 300, "vision")}, compose.Part{Tool: part("second", 700, "sound")})
	require.NoError(t, err)
	require.Empty(t, whole.Unseen(perm.ClientFacts{Confidence: 700, Capabilities: []string{"sound", "vision"}}))
	require.NotEmpty(t, whole.Unseen(perm.ClientFacts{Confidence: 699, Capabilities: []string{"sound", "vision"}}))
	require.NotEmpty(t, whole.Unseen(perm.ClientFacts{Confidence: 700, Capabilities: []string{"vision"}}))
}
