package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorst(t *testing.T) {
	for _, tt := range []struct{ a, b, want ExitCode }{
		{ExitOK, ExitOK, ExitOK},
		{ExitOK, ExitDenied, ExitDenied},
		{ExitPending, ExitDenied, ExitPending},
		{ExitFailed, ExitPending, ExitFailed},
		{ExitPartial, ExitFailed, ExitPartial},
		{ExitUnknown, ExitPartial, ExitUnknown},
		{ExitUsage, ExitUnknown, ExitUsage},
		{ExitInternal, ExitUsage, ExitInternal},
		{ExitOK, 99, ExitInternal},
		{ExitDenied, 99, ExitInternal},
	} {
		require.Equal(t, tt.want, Worst(tt.a, tt.b), "%d and %d", tt.a, tt.b)
		require.Equal(t, tt.want, Worst(tt.b, tt.a), "%d and %d", tt.b, tt.a)
	}
}
