package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// TestCompiledPacksAgree compares decisions of the packs with those of topdown
// alone, for requests that the packs distinguish.
func TestCompiledPacksAgree(t *testing.T) {
	for _, name := range policies.Names() {
		pack, _ := policies.Pack(name)
		e, err := rego.New(rego.Options{Sources: []rego.Source{{FS: pack, NoTests: true}}, Timeout: longTimeout, CacheSize: -1})
		require.NoError(t, err)
		rnd := rand.New(rand.NewPCG(5, 6))
		compiled, effects := 0, map[perm.Effect]int{}
		requests := max(statcheck.Size(600, 20_000), 300)
		for range requests {
			r := packRequest(rnd)
			if sure, all := rego.CompiledAnswer(e, r); sure && all {
				compiled++
			}
			got, gotErr := e.Decide(context.Background(), r)
			want, wantErr := rego.DecideWhole(context.Background(), e, r)
			if a, b := fmt.Sprint(got, gotErr), fmt.Sprint(want, wantErr); a != b {
				require.Fail(t, "a compiled rule differs", "%s\n%+v\ngot  %s\nwant %s", name, r, a, b)
			}
			effects[got.Effect()]++
		}
		t.Logf("%s: %d requests, %d without topdown, %v", name, requests, compiled, effects)
		if name != "flow" && name != "coding-agent" { // they walk the arguments, and the parts of commands, which only topdown does
			require.Equal(t, requests, compiled, "%s: topdown evaluates a rule of the pack", name)
		}
	}
}

// packRequest returns a request whose parts are of the kind that packs read.
func packRequest(rnd *rand.Rand) perm.Request {
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	var segments []string
	for range 1 + rnd.IntN(4) {
		segments = append(segments, one(
			"src", "a.go", ".env", ".ENV. ", ".env.example", ".env.local", "id_rsa", "id_rsa.pub", "key.pem", "ca.pem", "test", "testdata", "fixtures",
			".git", "config", "hooks", ".docker", "config.json", ".claude", "settings.json", ".mcp.json", "credentials", "x.tfstate", "go.env",
		))
	}
	file := strings.Join(segments, "/")
	r := perm.Request{
		Principal: perm.Principal{ID: "p", Kind: "agent"},
		Purpose:   []perm.Purpose{perm.PurposeRun, perm.PurposeApply, perm.PurposeRevert, perm.PurposeMerge, perm.PurposeVerify, perm.PurposeList}[rnd.IntN(6)],
		Tool: perm.ToolFacts{
			Name: one("file_write", "shell_run", "fetch"), Confinement: one("handles", "sandbox", "trusted"), Coverage: one("confined", "observed", "declared"),
			Destination: one("none", "configured", "model_chosen", "third_party"), Tags: [][]string{nil, {"mcp"}, {"untrusted", "mcp"}, {"draft"}}[rnd.IntN(4)],
			Grade: one("ungraded", "crash_undoable"), Risk: perm.Risk(one("low", "high", "")), Confidence: rnd.IntN(3) * 500,
		},
		Call: perm.CallFacts{
			EffectClass: one("pure", "reversible", "compensable", "deferrable", "pivot"), Declared: rnd.IntN(4) > 0, Args: json.RawMessage(one(`{}`, `{"path":"a"}`, `"x"`)),
			Batch: perm.BatchFacts{Count: 1},
		},
		Access: perm.AccessFacts{
			Action: perm.Action(one("read", "list", "write", "delete", "execute", "connect", "call", "ask")),
			Resource: perm.ResourceFacts{
				Kind: "file", Text: "file://workspace/" + file, Root: one("workspace", "workspace", "other"), Path: file, Segments: segments,
				Name: segments[len(segments)-1], Ext: path.Ext(file),
			},
		},
		Time: time.Unix(1_800_000_000, 0).UTC(),
	}
	if rnd.IntN(3) == 0 {
		kind := one("tool", "mcp", "https", "exec", "db")
		r.Access.Resource = perm.ResourceFacts{Kind: kind, Text: kind + "://x/y", Host: one("example.test", "localhost"), Name: "y"}
	}
	if rnd.IntN(4) == 0 {
		r.Session.Labels = []string{one("untrusted", "private", "public")}
	}
	if rnd.IntN(4) == 0 {
		r.Access.Git = &perm.GitFacts{Kind: one("config", "hook", "attributes", "link", "todo", "repository"), Keys: []string{one("user.name", "core.hookspath", "remote.*.url")}, New: rnd.IntN(2) == 0}
	}
	if rnd.IntN(4) == 0 {
		given := rnd.IntN(2) == 0
		r.Access.UserProvided = &given
		r.Call.URLs = []perm.URLFacts{{URL: "https://example.test/", UserProvided: given}}
	}
	if rnd.IntN(3) == 0 {
		r.Session.Client = &perm.ClientFacts{Surface: "chat", ProviderTrust: rnd.IntN(3) * 500}
	}
	return r
}
