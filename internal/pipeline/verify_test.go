package pipeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestTimeToVerify: a Verify gets more time where there is more to look at.
func TestTimeToVerify(t *testing.T) {
	l := tool.Limits{VerifyTimeout: 30 * time.Second}
	require.Equal(t, 30*time.Second, pipeline.TimeToVerify(l, nil))
	require.Equal(t, 430*time.Second, pipeline.TimeToVerify(l, make([]effect.Change, 20_000)))
	large := effect.Change{Blobs: []effect.BlobRef{{Size: 1 << 30}}}
	require.Equal(t, 62*time.Second+20*time.Millisecond, pipeline.TimeToVerify(l, []effect.Change{large}))
}

// TestChangedResource checks that a policy sees a change whose name it cannot
// decide, with the facts of what encloses it.
func TestChangedResource(t *testing.T) {
	for name, want := range map[string]perm.ResourceFacts{
		"file://workspace/src/a.go": {Kind: "file", Root: "workspace", Path: "src/a.go", Segments: []string{"src", "a.go"}, Name: "a.go", Ext: ".go"},
		"db://main/orders/1":        {Kind: "db", Database: "main", Table: "orders", Name: "orders"},
		"db://main/orders/'a/b#c?'": {Kind: "db", Database: "main", Table: "orders", Name: "orders"},
		"https://api.example.com/v1/items#5583aded87e6.1": {
			Kind: "https", Scheme: "https", Host: "api.example.com", Port: 443, Path: "v1/items", Segments: []string{"v1", "items"}, Name: "items",
		},
		"https://api.example.com/v1/items?key=1": {
			Kind: "https", Scheme: "https", Host: "api.example.com", Port: 443, Path: "v1/items", Segments: []string{"v1", "items"}, Name: "items",
		},
		"state://s_1/note": {Kind: "other"},
		"":                 {Kind: "other"},
	} {
		want.Text = name
		if want.Table != "" {
			want.Path, want.Segments = "", nil
		}
		require.Equal(t, want, pipeline.ChangedResource(name), name)
	}
	require.Equal(t, "db://main/t/\uFFFD", pipeline.ChangedResource("db://main/t/\xff").Text)
}
