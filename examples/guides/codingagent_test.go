package guides_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/sandbox"
)

// codingAgent puts a stand-in of Claude Code on the path, and the files of the
// page in a folder.
func codingAgent(p *place) {
	t := p.t.(*testing.T)
	programs(t)
	if m, err := sandbox.Probe(t.Context(), "", p.dir, ""); err != nil || m.Level != sandbox.Strict {
		t.Skip("programs run at a lower level here, so the agent's commands are observed")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	bin := filepath.Join(p.home, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	script := fmt.Sprintf("#!/bin/sh\nexport %s=claude\nexec '%s' \"$@\"\n", asServer, program)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(script), 0o700)) //nolint:gosec // a program
	p.env = append(p.env, "PATH="+bin+string(filepath.ListSeparator)+binary(t)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"plan.md", "drafts/one.md", "drafts/two.md"} {
		p.write("notes/"+name, "text of "+name+"\n")
	}
	p.residentProcess(t)
}

// residentProcess starts remit daemon, so that the test can end it.
func (p *place) residentProcess(t *testing.T) {
	require.NoError(t, os.MkdirAll(filepath.Join(p.home, ".local", "state"), 0o700))
	says, ready, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join(binary(t), "remit"), "daemon", "--ready-fd", "3")
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", p.env, []*os.File{ready}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	require.NoError(t, ready.Close())
	word := make([]byte, 16)
	n, err := says.Read(word)
	require.NoError(t, err)
	require.Equal(t, "ready\n", string(word[:n]))
}

// toolUse is one use of a tool by the stand-in.
type toolUse struct {
	tool string
	in   map[string]any
}

// prompted is what the stand-in does at a prompt.
type prompted struct {
	id   string
	uses []toolUse
	says string
}

var prompts = map[string]prompted{
	"Tidy up this folder": {"27cfc9ca-240c-458a-a441-4908086e8f2f", []toolUse{
		{"Bash", map[string]any{"command": "rm -rf drafts", "description": "Delete the drafts"}},
		{"Write", map[string]any{"file_path": "summary.md", "content": "Nothing is left to do.\n"}},
	}, "I deleted drafts and wrote summary.md."},
	"Read the settings": {"5e0c2f8a-91f5-4b0e-8a3e-0c1d6f6f3a77", []toolUse{
		{"Read", map[string]any{"file_path": ".env"}},
	}, "I could not read .env."},
}

// playClaude works on one prompt as Claude Code does: it runs the hooks of the
// user's settings, and its tools as they say.
func playClaude(args []string) error {
	_ = os.Unsetenv(asServer)
	if len(args) != 2 || args[0] != "-p" {
		return errors.New("usage: claude -p PROMPT")
	}
	what, known := prompts[args[1]]
	if !known {
		return fmt.Errorf("the stand-in does not know the prompt %q", args[1])
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	c := claudeStandIn{dir: dir, prompt: what.id}
	if _, err := c.hook("UserPromptSubmit", map[string]any{"prompt": args[1]}); err != nil {
		return err
	}
	for i, use := range what.uses {
		if err := c.use(fmt.Sprintf("toolu_%d", i), use); err != nil {
			return err
		}
	}
	for _, event := range []string{"Stop", "SessionEnd"} {
		if _, err := c.hook(event, map[string]any{}); err != nil {
			return err
		}
	}
	fmt.Println(what.says)
	return nil
}

type claudeStandIn struct{ dir, prompt string }

// use runs one tool between its two events.
func (c claudeStandIn) use(id string, u toolUse) error {
	if name, ok := u.in["file_path"].(string); ok {
		u.in["file_path"] = filepath.Join(c.dir, name)
	}
	members := map[string]any{"tool_name": u.tool, "tool_use_id": id, "tool_input": u.in}
	raw, err := c.hook("PreToolUse", members)
	if err != nil {
		return err
	}
	var answer struct {
		HookSpecificOutput struct {
			PermissionDecision       string
			PermissionDecisionReason string
			UpdatedInput             map[string]any
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("the hook answered %q: %w", raw, err)
	}
	if answer.HookSpecificOutput.PermissionDecision != "allow" {
		return nil
	}
	if in := answer.HookSpecificOutput.UpdatedInput; in != nil {
		u.in = in
	}
	switch u.tool {
	case "Bash":
		err = exec.Command("bash", "-c", u.in["command"].(string)).Run() //nolint:gosec // of the page
	case "Write":
		err = os.WriteFile(u.in["file_path"].(string), []byte(u.in["content"].(string)), 0o600)
	default:
		err = fmt.Errorf("the stand-in has no tool %s", u.tool)
	}
	if err != nil {
		return err
	}
	members["tool_response"] = map[string]any{"stdout": ""}
	_, err = c.hook("PostToolUse", members)
	return err
}

// hook runs the hooks of an event, and returns the last output.
func (c claudeStandIn) hook(event string, members map[string]any) (out []byte, err error) {
	text, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), ".claude", "settings.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("remit is not connected")
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Command string
				Args    []string
			}
		}
	}
	if err := errors.Join(err, json.Unmarshal(text, &settings)); err != nil {
		return nil, err
	}
	members["hook_event_name"], members["session_id"], members["prompt_id"], members["cwd"] = event, "session-"+c.prompt, c.prompt, c.dir
	raw, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	for _, group := range settings.Hooks[event] {
		for _, h := range group.Hooks {
			cmd := exec.Command(h.Command, h.Args...) //nolint:gosec // of the user
			cmd.Stdin, cmd.Stderr = bytes.NewReader(raw), os.Stderr
			cmd.Env = append(os.Environ(), "CLAUDE_PROJECT_DIR="+c.dir)
			if out, err = cmd.Output(); err != nil {
				return nil, fmt.Errorf("%s: %w", event, err)
			}
		}
	}
	return out, nil
}

// TestReadmeCodingAgent connects a coding agent, lets it delete files, and
// reverts that, as README.md describes.
func TestReadmeCodingAgent(t *testing.T) {
	shell(t)
	p := newPlace(t)
	codingAgent(p)
	lines := strings.Split(strings.TrimSpace(take(t, "README.md", "sh", 0)), "\n")
	require.Len(t, lines, 3)
	p.sh(0, lines[0])
	p.sh(0, "cd notes; claude -p 'Tidy up this folder'")
	require.NoDirExists(t, filepath.Join(p.dir, "notes", "drafts"))
	p.sh(0, "cd notes; "+lines[1])
	require.Equal(t, "text of drafts/one.md\n", p.content("notes/drafts/one.md"))
	require.NoFileExists(t, filepath.Join(p.dir, "notes", "summary.md"))
	p.sh(0, lines[2])
	require.NoFileExists(t, filepath.Join(p.home, ".claude", "settings.json"))
}
