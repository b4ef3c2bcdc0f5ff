package gateway_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// TestEntrySaysWhereValuesComeFrom: policies see the roles of the entry, and the
// tool declares its trusted fields. A draft says neither.
func TestEntrySaysWhereValuesComeFrom(t *testing.T) {
	for _, draft := range []string{"", `"draft": true, `} {
		h := newGatewaySetup(t)
		var seen []perm.ValueFacts
		h.policy = perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
			if r.Tool.Name == "s__set" {
				seen = r.Call.Values
			}
			return perm.NewDecision(perm.Allow, perm.Details{}), nil
		})
		h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {
			"get": {`+draft+`"effectClass": "pure", "trustedFields": ["/value"]},
			"set": {`+draft+`"effectClass": "pivot", "roles": {"/value": "content"}}}}}`)
		specs := map[string]tool.Spec{}
		for _, served := range h.gateway.Tools() {
			specs[served.Name()] = served.Spec()
		}
		if draft != "" {
			require.Empty(t, specs["s__set"].Roles)
			require.Equal(t, &provenance.Content{Trust: provenance.Untrusted}, specs["s__get"].OutputContent)
			continue
		}
		require.Equal(t, provenance.Roles{"/value": provenance.Payload}, specs["s__set"].Roles)
		require.Equal(t, &provenance.Content{Trust: provenance.Untrusted, Fields: map[string]provenance.Trust{"/structuredContent/value": provenance.Trusted}},
			specs["s__get"].OutputContent)
		h.put("store.json", `{"secret-key": "invoice-4711"}`)
		tx := h.txn()
		_, err := tx.Invoke(t.Context(), "s__get", tool.Args{"key": "secret-key"})
		require.NoError(t, err)
		_, err = tx.Invoke(t.Context(), "s__set", tool.Args{"key": "other", "value": "invoice-4711"})
		require.NoError(t, err)
		require.Len(t, seen, 2)
		byPointer := map[string]perm.ValueFacts{}
		for _, one := range seen {
			byPointer[one.Pointer] = one
		}
		require.Equal(t, "authority", byPointer["/key"].Role)
		require.Equal(t, "content", byPointer["/value"].Role)
		require.Equal(t, []string{"trusted"}, byPointer["/value"].Origins, "the server returned it, also as a text")
	}
}
