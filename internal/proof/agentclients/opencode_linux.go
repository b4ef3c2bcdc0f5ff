package agentclients

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"
)

//go:embed opencode.js
var opencodePlugin string

func opencode() driver {
	config, err := json.Marshal(map[string]any{
		"provider": map[string]any{"stand-in": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "stand-in",
			"options": map[string]any{"baseURL": "http://" + address + "/v1", "apiKey": "stand-in"},
			"models":  map[string]any{"model": map[string]any{"name": "model", "tool_call": true}},
		}},
		"model": "stand-in/model", "small_model": "stand-in/model", "autoupdate": false, "share": "disabled", "permission": "allow",
	})
	if err != nil {
		panic(err)
	}
	return driver{
		env: func(Session) []string {
			return []string{
				"OPENCODE_CONFIG_CONTENT=" + string(config), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
				"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1",
				// It installs a package for plugins. Here that fails at once, and nothing needs it.
				"NPM_CONFIG_REGISTRY=http://" + address + "/npm/", "NPM_CONFIG_FETCH_RETRIES=0",
			}
		},
		run: runOpencode,
		hooks: func(h Hook) map[string]string {
			command, _ := json.Marshal(h.Command)
			text := strings.NewReplacer(`"COMMAND"`, string(command)).Replace(opencodePlugin)
			return map[string]string{".config/opencode/plugins/hook.js": text}
		},
	}
}

// runOpencode runs a process for each prompt, and continues the session of the
// first.
func runOpencode(t *testing.T, p *place, s Session) (all []Outcome) {
	for i, prompt := range s.Prompts {
		s.starts(i)
		args := []string{"run", "--format", "json", "--auto"}
		if i > 0 {
			args = append(args, "--continue")
		}
		all = append(all, p.once(t, s.Dir, append(append(args, s.Flags...), prompt.Text)...))
	}
	return all
}
