package pipeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/pipeline"
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
