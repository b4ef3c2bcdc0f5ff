package guides_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestSubAgent checks that the sub-agent of the guide reads and does not write,
// and that a claim of one agent refuses or delays another one.
func TestSubAgent(t *testing.T) {
	rt, _ := runtime(t, agent.Tools(builtin.Files()...))
	parent := session(t, rt)
	_, err := call(t, parent, "file_write", map[string]any{"path": "docs/a.md", "content": "hi"})
	require.ErrorIs(t, err, tool.ErrFailed, "there is no folder docs")
	_, err = call(t, parent, "dir_create", map[string]any{"path": "docs"})
	require.NoError(t, err)
	_, err = call(t, parent, "file_write", map[string]any{"path": "docs/a.md", "content": "hi"})
	require.NoError(t, err)
	reviewer, err := delegate(t.Context(), parent)
	require.NoError(t, err)
	_, err = call(t, reviewer, "file_read", map[string]any{"path": "docs/a.md"})
	require.NoError(t, err)
	_, err = call(t, reviewer, "file_write", map[string]any{"path": "docs/a.md", "content": "other"})
	require.ErrorIs(t, err, tool.ErrDenied)

	tx, err := parent.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Invoke(t.Context(), "file_write", map[string]any{"path": "docs/b.md", "content": "first"})
	require.NoError(t, err)
	_, err = call(t, session(t, rt), "file_write", map[string]any{"path": "docs/b.md", "content": "second"})
	require.ErrorContains(t, err, tx.ID(), "the error names the holder")
	require.NoError(t, tx.Commit(t.Context()))
}

func delegate(ctx context.Context, session *agent.Session) (*agent.Session, error) {
	// guide: guides/sub-agents.md
	reviewer, err := session.Delegate(ctx, perm.Principal{ID: "reviewer"},
		agent.Grant(perm.Access(perm.Read, "file://workspace/docs/**")),
		agent.Expires(time.Now().Add(time.Hour)),
		agent.MaxUses(20))
	// end of guide
	return reviewer, err
}
