package agentclients

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// geminiEvents are the events of hooks of Gemini CLI, without those about
// requests to the model.
var geminiEvents = []string{"SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd", "Notification", "PreCompress"}

const geminiSettings = `{
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
}`

func gemini() driver {
	return driver{
		env: func(s Session) []string {
			return []string{
				"GEMINI_API_KEY=stand-in", "GOOGLE_GEMINI_BASE_URL=http://" + address, "GEMINI_CLI_TRUST_WORKSPACE=true",
				"GEMINI_TELEMETRY_ENABLED=false",
				"GEMINI_CLI_NO_RELAUNCH=true", // one process, which a test can kill
			}
		},
		run: runGemini,
		hooks: func(h Hook) map[string]string {
			handler := map[string]any{"type": "command", "command": h.Command, "name": "hook", "timeout": 1000 * h.Timeout}
			return map[string]string{".gemini/settings.json": hooksJSON(geminiEvents, handler)}
		},
	}
}

// runGemini runs a process for each prompt, and resumes the session of the
// first.
func runGemini(t *testing.T, p *place, s Session) (all []Outcome) {
	// Gemini CLI ignores such a file in a folder that others can write to, as
	// the one for temporary files is.
	settings := filepath.Join(p.client.dir, "stand-in-settings.json")
	require.NoError(t, os.WriteFile(settings, []byte(geminiSettings), 0o600))
	p.env = append(p.env, "GEMINI_CLI_SYSTEM_SETTINGS_PATH="+settings)
	for i, prompt := range s.Prompts {
		s.starts(i)
		args := []string{"--yolo", "-o", "json", "-m", "gemini-2.5-pro"}
		if i > 0 {
			args = append(args, "--resume", "latest")
		}
		all = append(all, p.once(t, s.Dir, append(append(args, s.Flags...), "-p", prompt.Text)...))
	}
	return all
}
