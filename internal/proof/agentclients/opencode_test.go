package agentclients_test

import (
	"testing"

	"github.com/remit-dev/remit/internal/proof/agentclients"
)

// opencodeTools are scenarios with each tool of opencode, without an answer of
// the hook.
func opencodeTools() []scenario {
	call := agentclients.Call
	return []scenario{
		{name: "bash", prompts: func(string) []agentclients.Prompt {
			return one(call("bash", object{"command": "echo made > made.txt; echo out; echo err >&2", "description": "Make a file"}))
		}},
	}
}

func TestClientsOpencode(t *testing.T) {
	c := agentclients.Clients()[3].Install(t)
	for _, sc := range opencodeTools() {
		t.Run(sc.name, func(t *testing.T) {
			play(t, c, sc)
		})
	}
}
