package program

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// TestSecretsOfTheBox holds what a server does not see before its first call to what the workspace policy masks.
func TestSecretsOfTheBox(t *testing.T) {
	engine, err := rego.New(rego.Options{Timeout: time.Minute, Sources: []rego.Source{{FS: policies.Workspace()}}})
	require.NoError(t, err)
	d, err := engine.Decide(t.Context(), perm.Request{Purpose: perm.PurposeRun, Tool: perm.ToolFacts{Confinement: "trusted"}})
	require.NoError(t, err)
	require.ElementsMatch(t, d.Details().Masks, secrets)
}
