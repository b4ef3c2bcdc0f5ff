package agentclients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// codexEvents are the events of hooks of Codex.
var codexEvents = []string{
	"SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "SubagentStart", "SubagentStop", "Stop", "SessionEnd", "Interrupt",
	"PreCompact", "PostCompact",
}

func codex() driver {
	return driver{
		env: func(Session) []string { return []string{"OPENAI_API_KEY=sk-stand-in", "STAND_IN_KEY=sk-stand-in"} },
		run: runCodex,
		hooks: func(h Hook) map[string]string {
			return map[string]string{".codex/hooks.json": hooksJSON(codexEvents, map[string]any{"type": "command", "command": h.Command, "timeout": h.Timeout})}
		},
	}
}

// runCodex runs a process for each prompt, and resumes the session of the
// first.
func runCodex(t *testing.T, p *place, s Session) (all []Outcome) {
	settings := []string{
		"-c", "model_provider=stand_in", "-c", `model_providers.stand_in={name="stand-in",base_url="http://` + address + `/v1",env_key="STAND_IN_KEY",wire_api="responses"}`,
		"-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false", "-c", "feedback.enabled=false",
		"-c", "model=gpt-5.5", // the last model that calls tools itself, not from a script
		"--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
	}
	if !s.AskForTrust {
		settings = append(settings, "--dangerously-bypass-hook-trust")
	}
	thread := ""
	for i, prompt := range s.Prompts {
		s.starts(i)
		args := append([]string{"exec"}, append(settings, s.Flags...)...)
		if thread != "" {
			args = append([]string{"exec", "resume"}, append(append(settings, s.Flags...), thread)...)
		}
		o := p.once(t, s.Dir, append(args, prompt.Text)...)
		all = append(all, o)
		if thread == "" {
			thread = codexThread(o.Output)
		}
	}
	return all
}

func codexThread(said string) string {
	for line := range bytes.Lines([]byte(said)) {
		var started struct {
			ThreadID string `json:"thread_id"`
		}
		if json.Unmarshal(line, &started) == nil && started.ThreadID != "" {
			return started.ThreadID
		}
	}
	return ""
}

// once runs one process of the agent without an input.
func (p *place) once(t *testing.T, dir string, args ...string) Outcome {
	t.Helper()
	cmd, err := p.command(dir, args...)
	require.NoError(t, err)
	var said bytes.Buffer
	cmd.Stdout = &said
	err = cmd.Run()
	return Outcome{Output: said.String(), Code: exitCode(t, err), CPU: computed(cmd)}
}

// TrustCodexHooks makes Codex trust the hooks of a home, as a person does with
// /hooks: Codex itself says the key and the hash of each, and its configuration
// gets both.
func (c Client) TrustCodexHooks(t *testing.T, home, dir string) {
	t.Helper()
	require.Equal(t, "codex", c.Name)
	p := &place{client: c, log: filepath.Join(t.TempDir(), "stderr"), env: []string{"HOME=" + home, "PATH=" + c.node() + ":" + os.Getenv("PATH")}}
	p.socket = filepath.Join(filepath.Dir(p.log), "model")
	cmd, err := p.command(dir, "app-server")
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	answers := json.NewDecoder(out)
	ask := func(id int, method string, params any) (result json.RawMessage) {
		raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		require.NoError(t, err)
		_, err = in.Write(append(raw, '\n'))
		require.NoError(t, err)
		for {
			var m struct {
				ID     int
				Result json.RawMessage
			}
			require.NoError(t, answers.Decode(&m))
			if m.ID == id {
				return m.Result
			}
		}
	}
	ask(1, "initialize", map[string]any{"clientInfo": map[string]any{"name": "remit", "version": "1"}})
	var listed struct {
		Data []struct {
			Hooks []struct{ Key, CurrentHash string }
		}
	}
	require.NoError(t, json.Unmarshal(ask(2, "hooks/list", map[string]any{"cwds": []string{dir}}), &listed))
	_ = in.Close()
	require.Equal(t, 0, exitCode(t, cmd.Wait()))
	f, err := os.OpenFile(filepath.Join(home, ".codex", "config.toml"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	for _, d := range listed.Data {
		for _, h := range d.Hooks {
			_, err := fmt.Fprintf(f, "\n[hooks.state.%q]\ntrusted_hash = %q\n", h.Key, h.CurrentHash)
			require.NoError(t, err)
		}
	}
}
