package doctor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytesWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0.0 KiB", 1 << 10: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 29: "2.5 GiB"} {
		require.Equal(t, want, bytesWords(n), fmt.Sprint(n))
	}
}

func TestStateFileSystem(t *testing.T) {
	for is, what := range map[Health]string{Healthy: "ext4", Weaker: "depends on what serves it", Failing: "other machines have it too"} {
		f := stateFileSystem("ext4", is)
		require.Equal(t, is, f.Is)
		require.Contains(t, f.What, what)
		require.Equal(t, is == Healthy, f.Fix == "")
	}
}
