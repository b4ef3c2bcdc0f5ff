package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

type eight struct {
	A string `json:"a"`
	B string `json:"b"`
	C int    `json:"c"`
	D bool   `json:"d"`
	E string `json:"e,omitempty"`
	F string `json:"f,omitempty"`
	G int    `json:"g,omitempty"`
	H bool   `json:"h,omitempty"`
}

// BenchmarkPureCall is a permitted pure call through the whole line: 100 rules,
// a schema of eight properties, a journal in memory.
func BenchmarkPureCall(b *testing.B) {
	text := "package remit\n"
	for i := range 99 {
		text += fmt.Sprintf("deny contains \"rule %d\" if input.tool.name == \"other_%d\"\n", i, i)
	}
	text += "allow contains \"pure\" if input.call.effect_class == \"pure\"\n"
	e, err := rego.New(rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": text}})
	require.NoError(b, err)
	tl, err := tool.CreateTyped("look", "", nil, func(context.Context, ctxperm.ToolContext, eight) (int, error) { return 1, nil }, tool.Pure())
	require.NoError(b, err)
	rt, err := agent.New(quiet(), agent.Tools(tl), agent.Policy(e))
	require.NoError(b, err)
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(b, err)
	tx, err := s.Begin(context.Background())
	require.NoError(b, err)
	in := tool.Args{"a": "one", "b": "two", "c": 3, "d": true, "e": "five"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tx.Invoke(context.Background(), "look", in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFileWrite is file_write of 4 KiB over an existing file, durable.
func BenchmarkFileWrite(b *testing.B) {
	j, err := sqlite.Open(context.Background(), b.TempDir())
	require.NoError(b, err)
	rt, err := agent.New(quiet(), agent.Tools(builtin.Files()...), agent.Root("workspace", b.TempDir()), agent.Journal(j))
	require.NoError(b, err)
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(b, err)
	tx, err := s.Begin(context.Background())
	require.NoError(b, err)
	for i := 0; b.Loop(); i++ {
		content := fmt.Sprintf("%04096d", i)
		if _, err := tx.Invoke(context.Background(), "file_write", tool.Args{"path": "a.txt", "content": content}); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, j.Close())
}
