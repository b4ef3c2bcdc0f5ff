package startup

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
)

// TestNoticeInPlace: the notice of a call that waits in its process names the
// maximum wait.
func TestNoticeInPlace(t *testing.T) {
	var errs bytes.Buffer
	a := cli.NewApp(cli.Env{Out: &errs, Err: &errs})
	n := Notices(a, &Flags{Workspace: state.Workspace{StateDir: t.TempDir()}})
	n.Tools = func() tool.Registry { return tool.Registry{} }
	n.Show(ctxperm.ApprovalRequest{Call: "c_1", Tool: "shell_run"})
	require.NotContains(t, errs.String(), "this process waits")
	n.Show(ctxperm.ApprovalRequest{Call: "c_2", Tool: "shell_run", InPlace: time.Hour})
	require.Contains(t, errs.String(), "here    it has begun, so this process waits for the answer, at most 1h0m0s; then the call is denied\n")
}
