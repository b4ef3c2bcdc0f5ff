package agentclients

import (
	"bytes"
	"encoding/json"
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
		"--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust",
	}
	thread := ""
	for _, prompt := range s.Prompts {
		args := append([]string{"exec"}, append(settings, s.Flags...)...)
		if thread != "" {
			args = append([]string{"exec", "resume"}, append(append(settings, s.Flags...), thread)...)
		}
		o := p.once(t, s.Dir, append(args, prompt.Text)...)
		all = append(all, o)
		if thread == "" {
			thread = codexThread(o.Said)
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
	return Outcome{Said: said.String(), Code: exitCode(t, err)}
}
