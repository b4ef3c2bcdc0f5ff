package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// TestEngineReadsOnly checks what ReadsOnly promises. A decision does not change
// what its request refers to, and no later decision depends on that memory,
// which then holds something else.
func TestEngineReadsOnly(t *testing.T) {
	for seed := range uint64(15) {
		policy := randomPolicy(rand.New(rand.NewPCG(seed, 11)), conditions())
		e, other := randomEngine(t, policy), randomEngine(t, policy)
		require.True(t, e.ReadsOnly())
		one, two := rand.New(rand.NewPCG(seed, 12)), rand.New(rand.NewPCG(seed, 12))
		for range 60 {
			first, second := randomRequest(one), randomRequest(two) // equal, in memory of their own
			text := fmt.Sprintf("%+v", first)
			got, gotErr := e.Decide(context.Background(), first)
			require.Equal(t, text, fmt.Sprintf("%+v", first))
			overwrite(first)
			want, wantErr := other.Decide(context.Background(), second)
			require.Equal(t, fmt.Sprint(want, wantErr), fmt.Sprint(got, gotErr), "%s", policy)
		}
	}
}

// overwrite changes all that a request refers to.
func overwrite(r perm.Request) {
	for _, list := range [][]string{r.Principal.Roles, r.Principal.Chain, r.Session.Labels, r.Tool.Tags, r.Access.Resource.Segments} {
		for i := range list {
			list[i] = "overwritten"
		}
	}
	for i := range r.Session.Recent {
		r.Session.Recent[i] = perm.RecentCall{Tool: "overwritten"}
	}
	for _, text := range []json.RawMessage{r.Call.Args, r.Output} {
		for i := range text {
			text[i] = '7'
		}
	}
	clear(r.Changes)
}
