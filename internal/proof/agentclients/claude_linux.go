package agentclients

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// claudeEvents are the events of hooks that a session without a person can
// have.
var claudeEvents = []string{
	"SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "PermissionDenied",
	"Notification", "SubagentStart", "SubagentStop", "Stop", "StopFailure", "SessionEnd", "PreCompact",
}

func claude() driver {
	return driver{
		env: func(Session) []string {
			return []string{
				"ANTHROPIC_BASE_URL=http://" + address, "ANTHROPIC_API_KEY=sk-ant-api03-stand-in", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1",
				"DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"IS_SANDBOX=1", // else it refuses to grant everything to root
			}
		},
		run: runClaude,
		hooks: func(h Hook) map[string]string {
			handler := map[string]any{"type": "command", "command": h.Command, "timeout": h.Timeout}
			if h.Block {
				handler["onFailure"] = "block"
			}
			return map[string]string{".claude/settings.json": hooksJSON(claudeEvents, handler)}
		},
	}
}

// runClaude runs all prompts in one process. It sends a prompt when the result
// of the one before has come.
func runClaude(t *testing.T, p *place, s Session) (all []Outcome) {
	args := append([]string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", "--model", "claude-sonnet-4-5",
	}, s.Flags...)
	cmd, err := p.command(s.Dir, args...)
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	for i, prompt := range s.Prompts {
		s.starts(i)
		message, err := json.Marshal(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": prompt.Text}})
		require.NoError(t, err)
		_, _ = in.Write(append(message, '\n'))
		said, more := untilResult(lines)
		all = append(all, Outcome{Output: said})
		if !more {
			break
		}
	}
	_ = in.Close()
	rest, _ := io.ReadAll(lines)
	all[len(all)-1].Output += string(rest)
	code := exitCode(t, cmd.Wait())
	for i := range all {
		all[i].Code, all[i].CPU = code, computed(cmd)
	}
	return all
}

// untilResult reads what the agent writes up to the result of a prompt.
func untilResult(lines *bufio.Reader) (said string, more bool) {
	var all strings.Builder
	for {
		line, err := lines.ReadString('\n')
		all.WriteString(line)
		var message struct{ Type string }
		switch _ = json.Unmarshal([]byte(line), &message); {
		case err != nil:
			return all.String(), false
		case message.Type == "result":
			return all.String(), true
		}
	}
}

// computed returns the processor time of a command that has ended.
func computed(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	require.NoError(t, err)
	return 0
}

// hooksJSON returns the configuration of one handler at some events.
func hooksJSON(events []string, handler map[string]any) string {
	all := map[string]any{}
	for _, event := range events {
		all[event] = []any{map[string]any{"hooks": []any{handler}}}
	}
	raw, err := json.MarshalIndent(map[string]any{"hooks": all}, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(raw)
}
