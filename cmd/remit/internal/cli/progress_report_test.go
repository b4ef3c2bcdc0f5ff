package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/tool"
)

// TestReport: the line shows the progress that a tool reports, cannot control
// the terminal, and is absent while a person answers.
func TestReport(t *testing.T) {
	for want, report := range map[string]tool.Progress{
		"… file_move 40 of 100 (0 s)":         {Tool: "file_move", Done: 40, Total: 100},
		"… fetch 7 (0 s)":                     {Tool: "fetch", Done: 7},
		"… fetch (0 s)":                       {Tool: "fetch"},
		"… fetch 0.5 of 2: \\x1b[2Jx y (0 s)": {Tool: "fetch", Done: 0.5, Total: 2, Message: "\x1b[2Jx\ny"},
	} {
		var out bytes.Buffer
		h := hosttest.New(1)
		h.Step = 0
		p := &Progress{writer: &out, host: h, began: h.Now()}
		p.Report(report)
		p.draw()
		require.Empty(t, out.String(), "nothing is being done")
		p.Show("run")
		p.Report(report)
		p.draw()
		require.Equal(t, want, out.String())
	}
}
