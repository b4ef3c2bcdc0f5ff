//go:build unix

package agent_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

const killedIn = "REMIT_STATE_KILLED_IN"

func stateRuntime(t *testing.T, dir string) (*agent.Runtime, func()) {
	j, err := sqlite.Open(context.Background(), filepath.Join(dir, "journal"))
	require.NoError(t, err)
	rt, err := agent.New(quiet(), agent.Tools(remembering(t, "todo", nil)), agent.Root("workspace", filepath.Join(dir, "work")), agent.Journal(j), agent.OnAbandoned(agent.RevertAbandoned))
	require.NoError(t, err)
	return rt, func() {
		require.NoError(t, rt.Close())
		require.NoError(t, j.Close())
	}
}

// TestStateAfterAKill kills a process during a call of a tool that also writes
// its state to a file. After recovery, the state on the journal and the file
// agree. No result that a caller received is lost.
func TestStateAfterAKill(t *testing.T) {
	if dir := os.Getenv(killedIn); dir != "" {
		workUntilKilled(t, dir)
		return
	}
	for n := range statcheck.Size(4, 200) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "work"), 0o700))
		token, told := killOne(t, dir, 1+n*3%11)
		rt, end := stateRuntime(t, dir)
		_, err := rt.Recover(t.Context())
		require.NoError(t, err)
		s, err := rt.ResumeSession(t.Context(), token)
		require.NoError(t, err)
		var now list
		if held := foreignRoots(t, rt, s, "todo"); held != "nothing" {
			require.NoError(t, canon.Decode([]byte(held), &now))
		}
		require.Equal(t, strings.Join(now.Items, " "), onTheDisk(t, dir), "killed after %d", len(told))
		require.Subset(t, now.Items, told)
		tx := begin(t, s)
		adds(t, tx, "todo", "last!")
		require.NoError(t, tx.Commit(t.Context()))
		_, err = s.Revert(t.Context(), tx.ID(), revert.Options{})
		require.NoError(t, err)
		require.Equal(t, strings.Join(now.Items, " "), onTheDisk(t, dir))
		fsckClean(t, rt)
		end()
	}
}

func onTheDisk(t *testing.T, dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, "work", "todo.txt"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(data)
}

// killOne runs a process until it has told of so many calls, and kills it somewhere in
// the next.
func killOne(t *testing.T, dir string, after int) (token string, told []string) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestStateAfterAKill$")
	cmd.Env = append(os.Environ(), killedIn+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for len(told) < after && lines.Scan() {
		switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
		case "session":
			token = rest
		case "kept":
			told = append(told, strings.Fields(rest)...)
		}
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.NotEmpty(t, token)
	require.Len(t, told, after)
	return token, told
}

// workUntilKilled keeps what it tells of; every third transaction it reverts.
func workUntilKilled(t *testing.T, dir string) {
	ctx := context.Background()
	rt, _ := stateRuntime(t, dir)
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	require.NoError(t, err)
	for n := 0; ; n++ {
		tx := begin(t, s)
		adds(t, tx, "todo", fmt.Sprintf("%d!", n))
		if n == 0 {
			fmt.Println("session", s.Token())
		}
		if n%3 == 2 {
			_, err := tx.Revert(ctx, revert.Options{})
			require.NoError(t, err)
			continue
		}
		require.NoError(t, tx.Commit(ctx))
		fmt.Printf("kept %d!\n", n)
	}
}

// TestErasureOfAState checks that prune keeps the current state of a session
// and deletes the others. If an operator erases the last call, the session
// starts without a state.
func TestErasureOfAState(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "work"), 0o700))
	rt, end := stateRuntime(t, dir)
	defer end()
	s := newSession(t, rt)
	var last string
	for _, text := range []string{"first", strings.Repeat("large", 20_000), "last"} {
		id, err := s.Update(ctx, func(tx *agent.Txn) error {
			adds(t, tx, "todo", text)
			return nil
		})
		require.NoError(t, err)
		last = id
	}
	was := foreignRoots(t, rt, s, "todo")
	back := &revert.Reverter{Journal: rt.Journal(), Host: host.Real()}
	for range 2 {
		_, err := back.Prune(ctx, revert.Retention{})
		require.NoError(t, err)
		require.Equal(t, was, foreignRoots(t, rt, s, "todo"))
		fsckClean(t, rt)
	}
	_, err := s.Revert(ctx, last, revert.Options{})
	require.ErrorIs(t, err, record.ErrErased)
	states := 0
	for e, err := range rt.Journal().Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindState}}) {
		require.NoError(t, err)
		if e.Erased == "" {
			states++
		}
	}
	require.Equal(t, 1, states, "only what the session goes on from")

	txn, err := revert.Load(ctx, rt.Journal(), last)
	require.NoError(t, err)
	_, err = back.Erase(ctx, txn.Calls[0].Ref.Call, record.Erased{By: "kim", Why: "asked"})
	require.NoError(t, err)
	require.Equal(t, "nothing", foreignRoots(t, rt, s, "todo"))
	fsckClean(t, rt)
	adds(t, begin(t, s), "todo", "anew")
	require.Equal(t, `{"calls":1,"items":["anew"]}`, foreignRoots(t, rt, s, "todo"))
}
