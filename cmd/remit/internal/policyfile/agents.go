package policyfile

import (
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/remit-dev/remit/perm/rego"
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

// LoadAgents loads the policy of coding agents. Its error has one line, because
// an agent shows it as the reason of a denial.
func LoadAgents(paths []string) (*rego.Engine, error) {
	e, err := Load(paths, false)
	if err != nil {
		why := strings.Join(strings.Fields(err.Error()), " ")
		return nil, fmt.Errorf("the policy of coding agents does not load: %s", why)
	}
	return e, nil
}

// Digest identifies the content of the files that Load reads, without the cost
// of a load. It is "" if one of them cannot be read.
func Digest(paths []string) string {
	sum := sha256.New()
	add := func(name string, text []byte, err error) error {
		_, _ = fmt.Fprintf(sum, "%q %d\n%s", name, len(text), text) // never fails
		return err
	}
	for _, p := range paths {
		_ = add(p, nil, nil)
		if strings.HasPrefix(p, policies.Prefix) {
			continue // a pack changes only with the program
		}
		info, err := os.Stat(p)
		switch {
		case err != nil:
		case info.IsDir():
			err = walkPolicyFiles(os.DirFS(p), add)
		default:
			var text []byte
			text, err = os.ReadFile(p)
			_ = add("", text, nil)
		}
		if err != nil {
			return ""
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// walkPolicyFiles gives the policy files of a folder to do, which ends the walk
// by an error.
func walkPolicyFiles(dir fs.FS, do func(name string, text []byte, err error) error) error {
	return fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isPolicyFile(name) {
			return err
		}
		text, err := fs.ReadFile(dir, name)
		return do(name, text, err)
	})
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

// ChangedSince says how the policy, which is in force now, differs from an
// earlier one; "": it does not, or there was none. A pack changes only with the
// program.
func (p AgentPolicy) ChangedSince(was AgentPolicy) string {
	return p.change(was, "%s changed since %s", "%s is in force, and %s was at %s")
}

// WaitsSince is that of ChangedSince for a policy that the next session brings
// into force.
func (p AgentPolicy) WaitsSince(was AgentPolicy) string {
	return p.change(was, "%s changed since %s, and the change takes effect at the next session of an agent", "%s takes effect at the next session of an agent; %s was loaded at %s")
}

// change formats the difference of the files, or of the paths.
func (p AgentPolicy) change(was AgentPolicy, files, paths string) string {
	named, at := strings.Join(p.Paths, " and "), was.Loaded.Format(time.RFC3339)
	switch {
	case was.Revision == "" || p.Revision == was.Revision || !OwnAgentPolicy(p.Paths) && !OwnAgentPolicy(was.Paths):
		return ""
	case slices.Equal(p.Paths, was.Paths):
		return fmt.Sprintf(files, named, at)
	}
	return fmt.Sprintf(paths, named, strings.Join(was.Paths, " and "), at)
}

// OwnAgentPolicy reports whether files of the user are the policy of coding
// agents or a part of it.
func OwnAgentPolicy(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return !strings.HasPrefix(path, policies.Prefix) })
}
