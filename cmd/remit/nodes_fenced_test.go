package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// TestFencedRun: a run whose opening was taken for dead says what can be done
// with its transaction, and that can be done.
func TestFencedRun(t *testing.T) {
	journal, _ := pgtest.Database(t)
	workspace, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	at := func(args ...string) []string {
		return append(args, "--journal", journal, "--workspace", workspace, "--state", state)
	}
	in, lines := io.Pipe()
	said, out := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		w := testEnv(in, out, &errs)
		w.Caller = personHere
		code <- run(context.Background(), at("run", "-"), w)
		_ = out.Close()
	}()
	_, err := io.WriteString(lines, `{"tool":"file_write","args":{"path":"a.txt","content":"one"}}`+"\n")
	require.NoError(t, err)
	reader := bufio.NewReader(said)
	first, err := reader.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, first, "created a.txt")
	pgtest.Exec(t, journal, "UPDATE remit.owners SET ended = now() WHERE ended IS NULL")
	_, err = io.WriteString(lines, `{"tool":"file_write","args":{"path":"b.txt","content":"two"}}`+"\n")
	require.NoError(t, err)
	require.NoError(t, lines.Close())
	rest, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, int(cli.ExitInternal), <-code, string(rest)+errs.String())
	txn := regexp.MustCompile(`t_[0-9a-z]{12}`).FindString(string(rest))
	require.Contains(t, string(rest), "transaction "+txn+" open: 2 calls, 1 done, 1 failed\n")
	require.Contains(t, string(rest), "commit it: remit resume "+txn)
	require.Equal(t, "remit: the journal refused a record of transaction "+txn+", so this process makes no more calls in it and does not commit it\n", errs.String())
	got, o, e := targetPlace{}.run(personHere, at("resume", txn, "--at-end", "commit")...)
	require.Zero(t, got, o+e)
	require.Contains(t, o, "transaction "+txn+" committed: 1 call, 1 done\n")
	require.NoFileExists(t, filepath.Join(workspace, "b.txt"))
}
