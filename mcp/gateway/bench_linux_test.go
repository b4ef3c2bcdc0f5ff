package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// BenchmarkBox is what a call costs of a server as it is, of one whose root is kept before each call, of one in the sandbox, which
// works on copies, and of one that is started anew for each call, as an overlay would want it: by how many files the root holds.
func BenchmarkBox(b *testing.B) {
	for _, files := range []int{10, 1000, 10_000} {
		for _, way := range []string{"plain", "kept", "copies", "anew"} {
			b.Run(fmt.Sprintf("%s/files=%d", way, files), func(b *testing.B) {
				h := newGatewaySetup(b)
				for i := range files {
					dir := filepath.Join(h.dir, fmt.Sprint(i/100))
					require.NoError(b, os.MkdirAll(dir, 0o755))
					require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte("x"), 0o644))
				}
				known := sandboxedProcess
				switch way {
				case "plain":
					known = `{"s": {"tools": {"set": {"effectClass": "pivot"}}}}`
				case "kept":
					known = `{"s": {"tools": {"set": {"effectClass": "reversible", "undo": {"snapshot": ["file://workspace/**"]}}}}}`
				}
				h.open(map[string]string{"s": h.server("store", nil)}, known)
				require.Equal(b, tool.StatusDone, h.call("s__set", tool.Args{"key": "a", "value": "first"}).Status) // for which all is copied
				for i := 0; b.Loop(); i++ {
					out := h.call("s__set", tool.Args{"key": "a", "value": fmt.Sprint(i)})
					require.Equal(b, tool.StatusDone, out.Status, out.Text)
					if way == "anew" {
						require.NoError(b, h.gateway.Close())
						h.begin()
					}
				}
			})
		}
	}
}
