package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/remit-dev/remit/internal/sandbox"
)

// The tree in which agents work, and the files that an observed command
// changes.
const (
	treeFolders, treeFiles = 1_000, 100
	changedByCommand       = 10
)

// The promises about hooks, in seconds: the whole process of a hook, with its
// start.
const (
	decideIn  = 0.015
	observeIn = 0.030
	walkIn    = 0.300
	copyIn    = 5
)

// observesAll is a policy that decides nothing else, so that commands named
// observe run in the observed workspace.
const observesAll = "package remit\n\nallow contains \"all\"\n\n" +
	"deny contains \"observe\" if {\n\tinput.tool.name == \"client_shell\"\n\tinput.call.args.command == \"observe\"\n}\n"

// hooked is a coding agent with remit connected: it starts the hook for each
// of its events.
type hooked struct {
	remit, dir string
	env        []string
	uses       int
	first      float64 // seconds of the first observed call, which copies the tree
}

// agents measures the hooks of a coding agent in a tree of 100,000 files.
func agents(c clock) ([]promiseRow, error) {
	base, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = sandbox.Discard(base) }() // a temporary folder
	h, stop, err := newHooked(base)
	if err != nil {
		return nil, err
	}
	defer stop()
	plain := filepath.Join(base, "plain")
	list := []subject{
		{name: "plain exec", op: func(int) error { return exec.Command("/bin/true").Run() }},
		{name: "decide", op: func(int) error { return h.decide() }},
		{name: "observe", op: func(int) error { return h.observe() }},
		{name: "walk", op: func(int) error { return h.walk() }},
		{name: "command", op: func(int) error { return h.command() }},
		{name: "plain command", op: func(int) error { return exec.Command("bash", "-c", "echo x > "+plain).Run() }},
	}
	q, err := interleaveEach(c, list...)
	if err != nil {
		return nil, err
	}
	return []promiseRow{
		h.within("decide a call by a hook, p50", q.p50, "decide", decideIn),
		h.within("decide a call by a hook, p99", q.p99, "decide", decideIn),
		h.within("observe a call that changed 10 of 100,000 files, p50", q.p50, "observe", observeIn),
		h.within("observe a call that changed 10 of 100,000 files, p99", q.p99, "observe", observeIn),
		h.within("observe a call after a walk of 100,000 files, p50", q.p50, "walk", walkIn),
		h.within("the first observed call, which copies 100,000 files", times{"first": {h.first}}, "first", copyIn),
		h.within("a sandboxed command with both hooks, p50", q.p50, "command", 0.1),
	}, nil
}

// within is a promise about a time.
func (h *hooked) within(what string, t times, name string, limit float64) promiseRow {
	took := median(t[name])
	return promiseRow{
		Suite: "agents", What: what + ", to its limit", Ratio: took / limit, Target: 1, Met: took <= limit,
		Of: fmt.Sprintf("%.1f ms", took*1e3), To: fmt.Sprintf("%.0f ms", limit*1e3),
	}
}

// newHooked makes the tree, builds the command, and starts a session.
func newHooked(base string) (h *hooked, stop func(), err error) {
	h = &hooked{remit: filepath.Join(base, "remit"), dir: filepath.Join(base, "src")}
	h.env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(base, "state"), "XDG_CONFIG_HOME="+filepath.Join(base, "config"), "CLAUDE_PROJECT_DIR="+h.dir)
	build := exec.Command("go", "build", "-o", h.remit, "./cmd/remit")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("building remit: %w\n%s", err, said)
	}
	policy := filepath.Join(base, "config", "remit", "coding-agent")
	if err := os.MkdirAll(policy, 0o700); err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(filepath.Join(policy, "all.rego"), []byte(observesAll), 0o600); err != nil {
		return nil, nil, err
	}
	for folder := range treeFolders {
		dir := filepath.Join(h.dir, fmt.Sprint("d", folder))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, nil, err
		}
		for file := range treeFiles {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", file)), fmt.Appendf(nil, "%d %d\n", folder, file), 0o600); err != nil {
				return nil, nil, err
			}
		}
	}
	daemon := exec.Command(h.remit, "daemon")
	daemon.Env = h.env
	if err := daemon.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() {
		_ = daemon.Process.Signal(os.Interrupt)
		_ = daemon.Wait()
	}
	_, err = h.event("UserPromptSubmit", map[string]any{"prompt": "work"})
	if err == nil {
		begin := time.Now()
		err = h.observe()
		h.first = time.Since(begin).Seconds()
	}
	if err != nil {
		stop()
	}
	return h, stop, err
}

// event runs the hook, and returns what it wrote.
func (h *hooked) event(name string, members map[string]any) (out []byte, err error) {
	all := map[string]any{"session_id": "s1", "cwd": h.dir, "prompt_id": "p1", "hook_event_name": name}
	for k, v := range members {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(h.remit, "hook", "claude-code")
	cmd.Env, cmd.Stdin = h.env, bytes.NewReader(raw)
	if out, err = cmd.Output(); err != nil {
		return nil, fmt.Errorf("the hook for %s: %w", name, err)
	}
	if bytes.Contains(out, []byte(`"deny"`)) {
		return nil, fmt.Errorf("the hook denied: %s", out)
	}
	return out, nil
}

func (h *hooked) decide() error {
	h.uses++
	_, err := h.event("PreToolUse", map[string]any{
		"tool_name": "Read", "tool_use_id": fmt.Sprint("r", h.uses), "tool_input": map[string]any{"file_path": filepath.Join(h.dir, "d1", "f1")},
	})
	return err
}

// observe runs both hooks of a command that changes some files.
func (h *hooked) observe() error {
	h.uses++
	use := map[string]any{"tool_name": "Bash", "tool_use_id": fmt.Sprint("o", h.uses), "tool_input": map[string]any{"command": "observe"}}
	if _, err := h.event("PreToolUse", use); err != nil {
		return err
	}
	for i := range changedByCommand {
		name := filepath.Join(h.dir, fmt.Sprint("d", (h.uses*7+i*31)%treeFolders), fmt.Sprint("f", i))
		if err := os.WriteFile(name, fmt.Appendf(nil, "%d\n", h.uses), 0o600); err != nil {
			return err
		}
	}
	use["tool_response"] = map[string]any{"stdout": ""}
	_, err := h.event("PostToolUse", use)
	return err
}

// walk is observe after a folder came and went, in which files with several
// names can have been: the index does not suffice.
func (h *hooked) walk() error {
	dir := filepath.Join(h.dir, "d1", "short")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil {
		return err
	}
	return h.observe()
}

// command runs a sandboxed command with both hooks.
func (h *hooked) command() error {
	h.uses++
	use := map[string]any{"tool_name": "Bash", "tool_use_id": fmt.Sprint("c", h.uses), "tool_input": map[string]any{"command": "echo x > made"}}
	out, err := h.event("PreToolUse", use)
	if err != nil {
		return err
	}
	var answer struct {
		Out struct {
			Input struct {
				Command string `json:"command"`
			} `json:"updatedInput"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return err
	}
	cmd := exec.Command("bash", "-c", answer.Out.Input.Command)
	cmd.Dir, cmd.Env = h.dir, h.env
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	use["tool_response"] = map[string]any{"stdout": ""}
	_, err = h.event("PostToolUse", use)
	return err
}
