package agentclients_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
)

// Versions of tools that are no clients.
const (
	ccundoVersion = "1.1.1"
	clineVersion  = "3.0.65"
)

//go:embed testdata/opencode.mjs
var opencodeScript string

//go:embed testdata/cline.mjs
var clineScript string

// undoRun is one step with one tool.
type undoRun struct {
	t          *testing.T
	client     agentclients.Client
	program    string // remit
	base, home string
	space      undoSpace
	step       undoStep
	tool       string
	service    *agentclients.Service
	id         string // of the session
	message    string // of the prompt
}

// undoTool is a tool with an undo.
type undoTool struct {
	name, client, version, how string
	// begin configures it.
	begin func(r *undoRun)
	// work lets its agent work on the step.
	work func(r *undoRun)
	// undo takes the step back, and returns what the tool said: one of three, and
	// its words.
	undo func(r *undoRun) (said, words string)
	// serve starts what serves all of its steps, if there is such a program.
	serve func(t *testing.T, c agentclients.Client, base string) *agentclients.Service
}

func undoTools() []undoTool {
	return []undoTool{
		{"remit, execute", "claude-code", "", "`remit connect claude-code`; `remit undo`. Commands run in the sandbox.", connectRemit, workClaude, undoRemit, nil},
		{"remit, observe", "claude-code", "", "the same with a policy that denies the sandboxed way, so commands run as the user", observeRemit, workClaude, undoRemit, nil},
		{"Claude Code rewind", "claude-code", "", "`--resume ID --rewind-files MESSAGE`, with `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING`", nil, workClaude, undoClaude, nil},
		{"ccundo", "claude-code", ccundoVersion, "`ccundo undo CALL --yes`, up to the first call of the prompt", nil, workClaude, undoCcundo, nil},
		{"opencode", "opencode", "", "`POST /session/ID/revert` of `opencode serve` with the prompt's message, as `/undo` sends it", nil, workServed, undoServed, serveOpencode},
		{"Cline checkpoints", "opencode", clineVersion, "`ClineCore.restore` of its core (npm), with the checkpoint before the prompt", nil, workServed, undoServed, serveCline},
	}
}

// env is what all programs of a run have in their environment.
func (r *undoRun) env() []string { return []string{"XDG_STATE_HOME=" + filepath.Join(r.base, "state")} }

func (r *undoRun) session() agentclients.Session {
	s := agentclients.Session{Dir: r.space.dir, Home: r.home, Env: r.env(), Beside: r.beside}
	p := agentclients.Prompt{Text: "do the work"}
	for _, a := range r.step.actions {
		for _, call := range r.calls(a) {
			p.Turns = append(p.Turns, agentclients.Turn(call))
		}
	}
	s.Prompts = []agentclients.Prompt{p}
	return s
}

// beside acts while a command of the agent waits.
func (r *undoRun) beside(kill func()) {
	if !r.step.during && !r.step.kill {
		return
	}
	if !eventually(func() bool { return endWaiting(r.space.dir, false) }, undoTimeout) {
		r.t.Log("no command waits")
		return
	}
	if r.step.during && r.step.person != nil {
		r.step.person(r.space)
	}
	if r.step.kill {
		kill()
	}
	for eventually(func() bool { return endWaiting(r.space.dir, true) }, undoTimeout/40) {
		continue // until none waits any more
	}
}

// calls returns an action as the calls of the client's tools.
func (r *undoRun) calls(a action) []fakemodel.Call {
	path := r.space.path(a.path)
	if r.tool == "Cline checkpoints" {
		return []fakemodel.Call{clineCall(a, path)}
	}
	read := agentclients.Call("Read", object{"file_path": path})
	switch r.client.Name {
	case "claude-code":
		switch a.do {
		case "edit":
			return []fakemodel.Call{read, agentclients.Call("Edit", object{"file_path": path, "old_string": a.old, "new_string": a.new})}
		case "create":
			return []fakemodel.Call{agentclients.Call("Write", object{"file_path": path, "content": a.new})}
		case "rewrite":
			return []fakemodel.Call{read, agentclients.Call("Write", object{"file_path": path, "content": a.new})}
		}
	case "opencode":
		read = agentclients.Call("read", object{"filePath": path})
		switch a.do {
		case "edit":
			return []fakemodel.Call{read, agentclients.Call("edit", object{"filePath": path, "oldString": a.old, "newString": a.new})}
		case "create":
			return []fakemodel.Call{agentclients.Call("write", object{"filePath": path, "content": a.new})}
		case "rewrite":
			return []fakemodel.Call{read, agentclients.Call("write", object{"filePath": path, "content": a.new})}
		}
	}
	return []fakemodel.Call{shellOf(r.client.Name, a.new)}
}

// clineCall returns an action as a call of Cline's core.
func clineCall(a action, path string) fakemodel.Call {
	switch a.do {
	case "edit":
		return agentclients.Call("editor", object{"path": path, "old_text": a.old, "new_text": a.new})
	case "create":
		return agentclients.Call("editor", object{"path": path, "new_text": a.new})
	case "rewrite":
		return agentclients.Call("run_commands", object{"commands": []string{"rm " + path}}) // its editor changes a file only in parts
	}
	return agentclients.Call("run_commands", object{"commands": []string{a.new}})
}

// run lets the agent work, and shows what its calls answered.
func (r *undoRun) run(s agentclients.Session) agentclients.Transcript {
	tr := r.client.Run(r.t, s)
	r.show(tr)
	return tr
}

func (r *undoRun) show(tr agentclients.Transcript) {
	for _, e := range tr.Outcomes[0].Calls {
		r.t.Logf("%s %s -> %s", e.Tool, short(e.Args), short(e.Result))
	}
}

func short(s string) string { return strings.TrimSpace(s[:min(len(s), 300)]) }

const claudeUUID = "11111111-2222-4333-8444-555555555555"

func workClaude(r *undoRun) {
	s := r.session()
	r.id, r.message = claudeUUID, ""
	s.Env = append(s.Env, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1")
	s.Flags = []string{"--session-id", claudeUUID, "--replay-user-messages"}
	tr := r.run(s)
	for line := range strings.Lines(tr.Outcomes[0].Output) {
		var m struct{ Type, UUID string }
		if json.Unmarshal([]byte(line), &m) == nil && m.Type == "user" && r.message == "" {
			r.message = m.UUID
		}
	}
}

func undoClaude(r *undoRun) (said, words string) {
	s := r.session()
	s.Env = append(s.Env, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1")
	out, errs, code := r.client.Exec(r.t, s, r.client.Program(), "-p", "--resume", r.id, "--rewind-files", r.message)
	if words = out + errs; code == 0 {
		return claimUndone, words
	}
	return claimNone, words
}

func undoCcundo(r *undoRun) (said, words string) {
	modules := agentclients.Package(r.t, "ccundo", ccundoVersion)
	program := filepath.Join(modules, ".bin", "ccundo")
	list, errs, _ := r.client.Exec(r.t, r.session(), program, "list")
	ids := regexp.MustCompile(`ID: (\S+)`).FindStringSubmatch(list)
	if ids == nil {
		return claimNone, list + errs
	}
	out, errs, _ := r.client.Exec(r.t, r.session(), program, "undo", ids[1], "--yes")
	switch words = out + errs; {
	case strings.Contains(out, "✗") && strings.Contains(out, "✓"):
		return claimPartly, words
	case strings.Contains(out, "✓"):
		return claimUndone, words
	}
	return claimNone, words
}

// serveOpencode and serveCline start what serves all steps.
func serveOpencode(t *testing.T, c agentclients.Client, base string) *agentclients.Service {
	script := filepath.Join(base, "opencode.mjs")
	must(os.WriteFile(script, []byte(opencodeScript), 0o600))
	return c.Serve(t, agentclients.Session{Dir: base, Home: base}, c.Node(), script, c.Program())
}

func serveCline(t *testing.T, c agentclients.Client, base string) *agentclients.Service {
	script := filepath.Join(base, "cline.mjs")
	must(os.WriteFile(script, []byte(clineScript), 0o600))
	return c.Serve(t, agentclients.Session{Dir: base, Home: base}, c.Node(), script, agentclients.Package(t, "cline", clineVersion))
}

// ask sends an order to the service.
func (r *undoRun) ask(verb, prompt string) (ok bool, said string) {
	line, err := json.Marshal(map[string]string{"verb": verb, "dir": r.space.dir, "prompt": prompt})
	require.NoError(r.t, err)
	var answer struct {
		OK   bool
		Said string
	}
	if raw := r.service.Ask(r.t, string(line)); json.Unmarshal([]byte(raw), &answer) != nil {
		return false, "it died: " + raw
	}
	return answer.OK, answer.Said
}

func workServed(r *undoRun) {
	p := r.session().Prompts[0]
	p.Text = "do the work of " + r.step.name + "."
	r.service.Model.Add(fakemodel.Scene{Prompt: p.Text, Turns: p.Turns})
	over := make(chan struct{})
	go func() { defer close(over); r.beside(r.service.Kill) }()
	ok, said := r.ask("work", p.Text)
	<-over
	r.t.Log(ok, short(said))
	for _, e := range r.service.Model.Exchanges() {
		if e.Prompt == p.Text {
			r.t.Logf("%s %s -> %s", e.Tool, short(e.Args), short(e.Result))
		}
	}
}

func undoServed(r *undoRun) (said, words string) {
	ok, words := r.ask("undo", "")
	if ok {
		return claimUndone, words
	}
	return claimNone, words
}

// remit runs the command as the person.
func (r *undoRun) remit(args ...string) (string, int) {
	cmd := exec.Command(r.program, args...)
	cmd.Dir = r.space.dir
	cmd.Env = append(append(os.Environ(), r.env()...), "HOME="+r.home, "XDG_CONFIG_HOME=")
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

func connectRemit(r *undoRun) {
	out, code := r.remit("connect", "claude-code")
	require.Zero(r.t, code, out)
}

const observing = `package remit

allow contains "everything" if true

deny contains "commands run as the user, and are observed" if input.tool.name == "client_shell"
`

func observeRemit(r *undoRun) {
	policy := filepath.Join(r.home, ".config", "remit", "coding-agent")
	must(os.MkdirAll(policy, 0o755))
	must(os.WriteFile(filepath.Join(policy, "policy.rego"), []byte(observing), 0o644))
	connectRemit(r)
}

func undoRemit(r *undoRun) (said, words string) {
	out, code := r.remit("undo")
	switch words = fmt.Sprintf("exit %d: %s", code, out); code {
	case 0:
		return claimUndone, words
	case 6:
		return claimPartly, words
	}
	return claimNone, words
}
