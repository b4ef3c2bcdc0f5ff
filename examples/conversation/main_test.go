package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool/wire"
)

var update = flag.Bool("update", false, "write the golden transcripts")

// TestConversations has one conversation in the format of each provider. The
// server rejects what the provider would reject. So its end proves that every
// call got one result, in its place, and that the model's own output was
// returned unchanged.
func TestConversations(t *testing.T) {
	for _, f := range wire.Formats() {
		t.Run(string(f), func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, run(context.Background(), &out, t.TempDir(), f))
			golden := filepath.Join("testdata", string(f)+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), out.String())
		})
	}
}

// TestServerRejectsInvalidHistories checks that the server rejects a history
// that lost a message, has one twice, or changes the model's own output.
func TestServerRejectsInvalidHistories(t *testing.T) {
	for _, f := range wire.Formats() {
		t.Run(string(f), func(t *testing.T) {
			ctx := context.Background()
			s, err := serve(f)
			require.NoError(t, err)
			defer s.Close()
			d := &app{dir: t.TempDir(), server: s, out: &bytes.Buffer{}, format: f}
			require.NoError(t, d.furnish())
			var whole agent.ModelRequest
			require.NoError(t, d.live(ctx, d.begin))
			c, err := d.recall()
			require.NoError(t, err)
			whole = agent.ModelRequest{Messages: c.Messages, Tools: map[string]json.RawMessage{"tools": json.RawMessage(`[]`), "toolConfig": json.RawMessage(`{}`)}}
			_, err = s.ask(ctx, whole)
			require.NoError(t, err)
			for i := 1; i < len(c.Messages); i++ {
				for name, changed := range map[string][]json.RawMessage{
					"lost":  splice(c.Messages, i),
					"twice": splice(c.Messages, i, c.Messages[i], c.Messages[i]),
					"other": splice(c.Messages, i, json.RawMessage(bytes.ReplaceAll(c.Messages[i], []byte("file_"), []byte("fil3_")))),
				} {
					if name == "other" && (bytes.Equal(changed[i], c.Messages[i]) || !bytes.Contains(c.Messages[i], []byte("opaque"))) {
						continue
					}
					if f == wire.OpenAIResponses && bytes.Contains(c.Messages[i], []byte(`"type":"message"`)) && name == "twice" {
						continue
					}
					_, err := s.ask(ctx, agent.ModelRequest{Messages: changed, Tools: whole.Tools})
					require.Error(t, err, "%s %d: %s", name, i, c.Messages[i])
				}
			}
		})
	}
}

func splice(messages []json.RawMessage, i int, in ...json.RawMessage) []json.RawMessage {
	out := append([]json.RawMessage{}, messages[:i]...)
	return append(append(out, in...), messages[i+1:]...)
}
