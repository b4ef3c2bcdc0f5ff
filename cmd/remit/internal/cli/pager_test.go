//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host"
)

func TestPage(t *testing.T) {
	pager := filepath.Join(t.TempDir(), "pager")
	require.NoError(t, os.WriteFile(pager, []byte("#!/bin/sh\necho page\nexec cat\n"), 0o700))
	for _, tt := range []struct {
		name, pager string
		terminal    bool
		agent       *Agent
		want        string
	}{
		{"of a person", pager, true, nil, "page\nhello\n"},
		{"no terminal", pager, false, nil, "hello\n"},
		{"an agent", pager, true, &Agent{}, "hello\n"},
		{"none is wanted", "cat", true, nil, "hello\n"},
		{"there is no such program", "/nowhere/less", true, nil, "hello\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			a := NewApp(Env{Out: &out, Err: &out, OutTerminal: tt.terminal, Host: host.Real(), Getenv: func(name string) string {
				return map[string]string{"PAGER": tt.pager}[name]
			}})
			a.Agent = tt.agent
			a.Page()
			_, _ = fmt.Fprintln(a.Out, "hello")
			require.NoError(t, a.Close())
			require.Equal(t, tt.want, out.String())
		})
	}
}
