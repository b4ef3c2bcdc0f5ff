package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
)

// TestOutputOfAProgram: people see every note, and no text controls the
// terminal. The output of another tool is not that of a program.
func TestOutputOfAProgram(t *testing.T) {
	e, is := callview.ProgramOf(json.RawMessage(`{"json":{"exit_code":-1,"signal":"killed","stdout":"a\u001b[2J\n\n","stderr":"` + strings.Repeat("x", 300) + `","sandbox":"strict",
		"dropped":7,"survivors":2,"left_out":["workspace/p: a pipe"],"restrictions":[{"rule":"hidden","text":".env is hidden"}]},"text":"…"}`))
	require.True(t, is)
	require.True(t, e.Failed())
	var out bytes.Buffer
	WriteProgram(cli.Style(false), &out, e, "c_1")
	require.Equal(t, `     out   a\x1b[2J
           
     err   `+strings.Repeat("x", 199)+`…
     note  not applied: workspace/p: a pipe
     note  sandbox: .env is hidden
     note  not kept: 7 bytes out of the middle of the output
     note  ended: 2 programs that it left running
     show  remit show c_1
`, out.String())
	for _, other := range []string{`null`, `"text"`, `{"exit_code":1}`, `{"json":{"exit_code":1},"text":""}`, `[`} {
		_, is := callview.ProgramOf(json.RawMessage(other))
		require.False(t, is, other)
	}
}
