//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// waiting leaves a call behind that somebody must approve.
func waiting(t *testing.T) (place []string, state, target, call string) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ask.rego": "package remit\nask contains \"look\" if input.access.action == \"write\"\n",
		"s.jsonl":  `{"tool":"file_write","args":{"path":"a.txt","content":"x"}}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	state, target = filepath.Join(dir, "state"), filepath.Join(dir, "ws", "a.txt")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "ws"), 0o700))
	place = []string{"--workspace", filepath.Join(dir, "ws"), "--state", state}
	code, out := command(t, append([]string{"run", "--on-ask", "wait", "--policy", filepath.Join(dir, "ask.rego"), filepath.Join(dir, "s.jsonl")}, place...)...)
	require.Equal(t, int(cli.ExitPending), code, out)
	call = regexp.MustCompile(`c_[0-9a-z]{12}`).FindString(out)
	return append(place, "--policy", filepath.Join(dir, "ask.rego")), state, target, call
}

// TestAlteredApproval: an answer that somebody wrote into the journal, or changed
// there, lets nothing run, and an answer is used once.
func TestAlteredApproval(t *testing.T) {
	answer := func(t *testing.T, verb string, place []string, call string) {
		code, out := command(t, append([]string{verb, call, "--why", "because"}, place[:4]...)...)
		require.Zero(t, code, out)
	}
	write := func(t *testing.T, state, call string, b record.Answered) {
		ctx := context.Background()
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		txn, c, err := revert.LoadCall(ctx, j, call)
		require.NoError(t, err)
		if b.Digest == "" {
			b.Digest = c.Asked.Digest
		}
		rec := revert.NewRecorder(j, host.Real(), txn.Session)
		require.NoError(t, rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Txn: txn.ID, Call: call, Body: &b}}, Durable: true}))
		require.NoError(t, j.Close())
	}
	change := func(t *testing.T, state, from, to string) {
		path := filepath.Join(state, "journal.db")
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(data, []byte(from)))
		require.NoError(t, os.WriteFile(path, bytes.Replace(data, []byte(from), []byte(to), 1), 0o600))
	}
	for name, tc := range map[string]struct {
		alter func(t *testing.T, state, call string, place []string)
		code  cli.ExitCode
		says  string
	}{
		"given to another question": {func(t *testing.T, state, call string, _ []string) {
			write(t, state, call, record.Answered{Approved: true, By: "tester", Digest: "sha256:0000"})
		}, cli.ExitDenied, "the answer was given to another question"},
		"written for who asks": {func(t *testing.T, state, call string, _ []string) {
			write(t, state, call, record.Answered{Approved: true, By: "agent"})
		}, cli.ExitDenied, "the one who asks cannot be the one who approves"},
		"written for nobody": {func(t *testing.T, state, call string, _ []string) {
			write(t, state, call, record.Answered{Approved: true})
		}, cli.ExitDenied, "the one who asks cannot be the one who approves"},
		"a no that became a yes": {func(t *testing.T, state, call string, place []string) {
			answer(t, "deny", place, call)
			change(t, state, `{"approved":false,"by"`, `{"approved":true ,"by"`)
		}, cli.ExitInternal, "journal is damaged"},
		"a name that was changed": {func(t *testing.T, state, call string, place []string) {
			answer(t, "approve", place, call)
			change(t, state, `"by":"tester"`, `"by":"nobody"`)
		}, cli.ExitInternal, "journal is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			place, state, target, call := waiting(t)
			tc.alter(t, state, call, place)
			code, out := command(t, append([]string{"resume", call}, place...)...)
			require.Equal(t, int(tc.code), code, out)
			require.Contains(t, out, tc.says)
			require.NoFileExists(t, target)
			if tc.code == cli.ExitInternal {
				code, out = command(t, append([]string{"fsck"}, place[:4]...)...)
				require.Equal(t, int(cli.ExitInternal), code, out)
			}
		})
	}
	t.Run("used again", func(t *testing.T) {
		place, state, target, call := waiting(t)
		answer(t, "approve", place, call)
		code, out := command(t, append([]string{"resume", call}, place...)...)
		require.Zero(t, code, out)
		require.NoError(t, os.Remove(target))
		write(t, state, call, record.Answered{Approved: true, By: "tester"})
		code, out = command(t, append([]string{"resume", call}, place...)...)
		require.Equal(t, int(cli.ExitUsage), code, out)
		require.Contains(t, out, "does not wait for an approval")
		require.NoFileExists(t, target)
	})
}
