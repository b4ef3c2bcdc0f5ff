package agentclients_test

import (
	"os"
	"testing"

	"github.com/remit-dev/remit/internal/proof/agentclients"
)

func TestMain(m *testing.M) { agentclients.Main(m) }

// TestClients plays sessions with real agents, and holds what their hooks and
// their models received against the samples. -update writes the samples.
func TestClients(t *testing.T) {
	if os.Getenv("REMIT_PROVE") == "" && !*update {
		t.Skip("starts four programs from npm more than a hundred times: make prove ARGS=clients, or REMIT_PROVE=1")
	}
	scenarios := map[string][]scenario{
		"claude-code": append(claudeTools(), claudeAnswers()...),
		"codex":       append(codexTools(), codexAnswers()...),
		"gemini-cli":  append(geminiTools(), geminiAnswers()...),
		"opencode":    append(opencodeTools(), opencodeAnswers()...),
	}
	played, differ := 0, 0
	for _, c := range agentclients.Clients() {
		t.Run(c.Name, func(t *testing.T) {
			c = c.Install(t)
			for _, sc := range scenarios[c.Name] {
				if !t.Run(sc.name, func(t *testing.T) {
					played++
					play(t, c, sc)
				}) {
					differ++
				}
			}
		})
	}
	if played > 0 {
		t.Logf("proved: hooks of real coding agents are as in the samples: %d sessions, %d violations", played, differ)
	}
}
