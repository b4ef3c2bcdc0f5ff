package agentclients_test

import (
	"testing"

	"github.com/remit-dev/remit/internal/proof/agentclients"
)

// geminiTools are scenarios with each tool of Gemini CLI, without an answer of
// the hook.
func geminiTools() []scenario {
	call := agentclients.Call
	return []scenario{
		{name: "shell", prompts: func(string) []agentclients.Prompt {
			return one(call("run_shell_command", object{"command": "echo made > made.txt; echo out; echo err >&2", "description": "Make a file"}))
		}},
	}
}

func TestClientsGeminiCLI(t *testing.T) {
	c := agentclients.Clients()[2].Install(t)
	for _, sc := range geminiTools() {
		t.Run(sc.name, func(t *testing.T) {
			play(t, c, sc)
		})
	}
}
