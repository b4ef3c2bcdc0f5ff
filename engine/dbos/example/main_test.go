package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
)

const childEnv = "REMIT_TEST_EXAMPLE"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(pgtest.Run(m))
}

// TestKilled kills the example three times while it works. Then each note is there once, in its order.
func TestKilled(t *testing.T) {
	database, _ := pgtest.Database(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "notes", "notes.txt")
	start := func() (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.Command(os.Args[0], "-database", database, "-dir", dir)
		cmd.Env = append(os.Environ(), childEnv+"=1")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		return cmd, bufio.NewScanner(out)
	}
	for _, last := range []string{"call 5 ", "call 17 ", "call 31 "} {
		cmd, lines := start()
		for lines.Scan() && !strings.HasPrefix(lines.Text(), last) {
		}
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait(), "it was killed at work")
	}
	cmd, lines := start()
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
	}
	require.NoError(t, cmd.Wait())
	require.Equal(t, "made 40 calls", said[len(said)-1])
	var want strings.Builder
	for n := range 40 {
		fmt.Fprintf(&want, "note %d\n", n+1)
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got))
}
