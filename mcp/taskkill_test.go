package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestMain makes a server of this binary, where a test starts it as one.
func TestMain(m *testing.M) {
	if os.Getenv("TASK_SERVER") == "" {
		os.Exit(m.Run())
	}
	if err := serveTasks(os.Getenv("TASK_SERVER"), os.Getenv("TASK_RECOVER") != ""); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveTasks serves what is in a folder until it is killed, and says where.
func serveTasks(dir string, recover bool) (err error) {
	ctx := context.Background()
	journal, err := sqlite.Open(ctx, filepath.Join(dir, "journal"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	tools, err := endless()
	if err != nil {
		return err
	}
	engine, err := rego.New(rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": asksForSure}})
	if err != nil {
		return err
	}
	workspace := filepath.Join(dir, "workspace")
	rt, err := agent.New(
		agent.Tools(tools...), agent.Journal(journal), agent.Policy(engine), agent.SuspendForApproval(), agent.OnAbandoned(agent.RevertAbandoned),
		agent.Root("workspace", workspace), agent.Log(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return err
	}
	if recover {
		if _, err := rt.Recover(ctx); err != nil && !errors.Is(err, agent.ErrPartialRevert) {
			return err
		}
	}
	srv, err := mcp.New(rt, mcp.Options{TaskAfter: time.Millisecond, Tasks: []string{"sure"}})
	if err != nil {
		return err
	}
	token := os.Getenv("TASK_TOKEN")
	if token == "" {
		s, err := rt.Session(ctx, perm.Principal{ID: "coder"}, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
		if err != nil {
			return err
		}
		token = s.Token()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(taskServer{URL: "http://" + l.Addr().String() + "/mcp", Token: token}); err != nil {
		return err
	}
	return srv.Serve(ctx, l, mcp.HTTPOptions{})
}

// taskServer is a server that is a process of its own.
type taskServer struct {
	URL, Token string
	cmd        *exec.Cmd
}

// endless are tools whose calls never end by themselves.
func endless() ([]tool.Tool, error) {
	forever := func(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, context.Cause(ctx)
	}
	var all []tool.Tool
	for _, s := range []tool.Spec{
		{Name: "reads", EffectClass: effect.Pure, Destination: tool.NoDestination, Execute: forever},
		{Name: "risky", EffectClass: effect.Pivot, Destination: tool.NoDestination, Execute: forever},
		{Name: "sure", EffectClass: effect.Pure, Destination: tool.NoDestination, Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("sure"), nil
		}},
	} {
		s.Input = json.RawMessage(`{"type":"object"}`)
		t, err := tool.FromSpec(s)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	for _, t := range builtin.Files() {
		if s := t.Spec(); s.Name == "file_write" {
			write := s.Execute
			s.Name = "writes"
			s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
				if _, err := write(ctx, tc, in); err != nil {
					return tool.Result{}, err
				}
				return forever(ctx, tc, in)
			}
			t, err := tool.FromSpec(s)
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}

func startTasks(t *testing.T, dir string, more ...string) *taskServer {
	self, err := os.Executable()
	require.NoError(t, err)
	s := &taskServer{cmd: exec.Command(self)}
	s.cmd.Env = append(append(os.Environ(), "TASK_SERVER="+dir), more...)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(s.kill)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, s))
	return s
}

// kill ends the process with SIGKILL.
func (s *taskServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// TestTaskOutlivesItsProcess: the process that runs tasks is killed. Another one knows them all, for the same session: what waits for
// approval goes on, and of what ran it says what the journal does, before and after that is recovered.
func TestTaskOutlivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "workspace"), 0o700))
	written := filepath.Join(dir, "workspace", "written.txt")
	client := func(s *taskServer) plainClient {
		return plainClient{t: t, url: s.URL, token: s.Token, caps: knowsBoth, ids: &atomic.Int64{}}
	}
	first := startTasks(t, dir)
	c := client(first)
	reads, risky, writes, sure := c.task("reads", nil), c.task("risky", nil), c.task("writes", map[string]any{"path": "written.txt", "content": "half"}), c.task("sure", nil)
	for _, err := os.Stat(written); err != nil; _, err = os.Stat(written) {
		require.Equal(t, "working", c.get(writes).Status)
	}
	first.kill()

	token := "TASK_TOKEN=" + first.Token
	second := startTasks(t, dir, token)
	c = client(second)
	for _, id := range []string{reads, risky, writes} {
		is := c.get(id)
		require.Equal(t, "completed", is.Status, "nobody runs it any more")
		require.True(t, is.Result.IsError)
		require.Equal(t, "unknown", is.Result.Meta["remit.dev/status"])
		c.cancel(id)
	}
	waits := c.get(sure)
	require.Equal(t, "input_required", waits.Status)
	for key := range waits.Inputs {
		require.Nil(t, c.update(sure, map[string]any{key: map[string]any{"action": "accept", "content": map[string]any{"approve": true}}}))
	}
	is := c.until(sure, wireTask.hasEnded)
	require.Equal(t, "sure", is.Result.Content[0].Text)
	second.kill()

	c = client(startTasks(t, dir, token, "TASK_RECOVER=1"))
	require.Equal(t, is, c.get(sure), "as it was told before")
	for id, status := range map[string]string{reads: "failed", risky: "unknown", writes: "done"} {
		is := c.get(id)
		require.Equal(t, "completed", is.Status)
		require.True(t, is.Result.IsError)
		require.Equal(t, status, is.Result.Meta["remit.dev/status"], "%+v", is.Result)
	}
	require.Contains(t, c.get(writes).Result.Content[0].Text, "reverted", "its effect was found, and its transaction had nobody to end it")
	require.NoFileExists(t, written, "what it had done is reverted")
}
