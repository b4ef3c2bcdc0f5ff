package ctxperm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
)

var contexts = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()

// TestInvalidToolContexts checks that the zero ToolContext, and one kept
// after its call, authorize nothing.
func TestInvalidToolContexts(t *testing.T) {
	x := begin(t, hosttest.New(1))
	c := x.call("c_1")
	kept := contexts.New(c)
	require.NoError(t, c.Close(t.Context()))
	for name, tc := range map[string]ctxperm.ToolContext{"zero": {}, "of no call": contexts.New(nil), "outlived": kept} {
		t.Run(name, func(t *testing.T) {
			_, err := ctxperm.Authorize(t.Context(), tc, perm.Access(perm.Write, file))
			require.ErrorIs(t, err, ctxperm.ErrClosed)
			require.ErrorIs(t, tc.Note(t.Context(), "k", 1), ctxperm.ErrClosed)
			tc.Progress(1, 2, "")
		})
	}
}
