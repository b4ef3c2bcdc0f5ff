package policyfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/hookclient"
	"github.com/remit-dev/remit/policies"
)

// AgentPaths returns the policy of coding agents: the folder coding-agent of
// the user's configuration in place of the pack, or the file coding-agent.rego
// beside the pack. A file that cannot be examined counts, so that loading it
// fails.
func AgentPaths() []string {
	pack := []string{policies.Prefix + "coding-agent"}
	config, err := os.UserConfigDir()
	if err != nil {
		return pack
	}
	instead := filepath.Join(config, "remit", "coding-agent")
	if exists(instead) {
		return []string{instead}
	}
	if beside := instead + ".rego"; exists(beside) {
		return append(pack, beside)
	}
	return pack
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// AgentPolicy is a policy of coding agents as a resident process loaded it.
type AgentPolicy struct {
	Paths    []string  `json:"paths"`
	Revision string    `json:"revision"`
	Loaded   time.Time `json:"loaded"`
}

func agentPolicyFile(home string) string {
	return filepath.Join(home, filepath.FromSlash(hookclient.Folder), "policy.json")
}

// LoadedAgentPolicy returns the policy that a resident process loaded last. The
// result is zero if none did.
func LoadedAgentPolicy(home string) (p AgentPolicy, err error) {
	text, err := os.ReadFile(agentPolicyFile(home))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return p, fmt.Errorf("the record of the loaded policy: %w", err)
	}
	return p, nil
}

// Save stores the policy as the loaded one.
func (p AgentPolicy) Save(home string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	file := agentPolicyFile(home)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// ChangedSince says how the policy differs from an earlier one; "": it does not,
// or there was none. A pack changes only with the program.
func (p AgentPolicy) ChangedSince(was AgentPolicy) string {
	builtin := func(paths []string) bool {
		return !slices.ContainsFunc(paths, func(path string) bool { return !strings.HasPrefix(path, policies.Prefix) })
	}
	switch {
	case was.Revision == "" || p.Revision == was.Revision || builtin(p.Paths) && builtin(was.Paths):
		return ""
	case slices.Equal(p.Paths, was.Paths):
		return fmt.Sprintf("%s changed since %s", strings.Join(p.Paths, " and "), was.Loaded.Format(time.RFC3339))
	}
	return fmt.Sprintf("%s is in force, and %s was at %s", strings.Join(p.Paths, " and "), strings.Join(was.Paths, " and "), was.Loaded.Format(time.RFC3339))
}
