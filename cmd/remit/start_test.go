package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStartIsCheap: packages do their work when it is asked for, not before
// main. What their initialization allocates tells its cost without a clock: 0.4 MB when this was written. Templates of the
// console were 2 MB and 4 ms of it.
func TestStartIsCheap(t *testing.T) {
	bin, err := builtOnce()
	require.NoError(t, err)
	cmd := exec.Command(bin, "log", "--help")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	sum, seen := 0, regexp.MustCompile(`(?m)^init (github\.com/remit-dev/\S+) @\S+ ms, \S+ ms clock, (\d+) bytes`).FindAllSubmatch(out, -1)
	require.NotEmpty(t, seen, "%s", out)
	for _, m := range seen {
		n, err := strconv.Atoi(string(m[2]))
		require.NoError(t, err)
		require.Less(t, n, 256<<10, "%s", m[1])
		sum += n
	}
	require.Less(t, sum, 768<<10)
}
