package connect

import (
	_ "embed" // files that connecting writes
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// The files that remit writes whole. REMIT stands for the command.
var (
	//go:embed files/opencode.js
	opencodePlugin string
	//go:embed files/undo.md
	undoCommand string
	//go:embed files/log.md
	logCommand string
	//go:embed files/diff.md
	diffCommand string
)

// The time that a client waits for a hook, in seconds. Before and after a call,
// remit can compare the folder with its last state.
const (
	callTimeout  = 120
	otherTimeout = 30
)

// hookEvent is an event for which a client runs a command.
type hookEvent struct {
	name  string
	calls bool // before or after a call
}

var (
	claudeEvents = []hookEvent{
		{"SessionStart", false},
		{"UserPromptSubmit", false},
		{"PreToolUse", true},
		{"PostToolUse", true},
		{"PostToolUseFailure", true},
		{"SubagentStop", false},
		{"Stop", true},
		{"SessionEnd", false},
	}
	codexEvents = []hookEvent{
		{"SessionStart", false}, {"UserPromptSubmit", false}, {"PreToolUse", true}, {"PostToolUse", true}, {"SubagentStop", false}, {"Stop", true},
	}
	geminiEvents = []hookEvent{
		{"SessionStart", false}, {"BeforeAgent", false}, {"BeforeTool", true}, {"AfterTool", true}, {"AfterAgent", true}, {"SessionEnd", false},
	}
	cursorEvents = []hookEvent{
		{"beforeSubmitPrompt", false}, {"preToolUse", true}, {"beforeShellExecution", true}, {"postToolUse", true}, {"afterFileEdit", true}, {"stop", true},
	}
)

func (e hookEvent) timeout() int {
	if e.calls {
		return callTimeout
	}
	return otherTimeout
}

// tool reports whether the event is about one call of a tool.
func (e hookEvent) tool() bool { return strings.Contains(strings.ToLower(e.name), "tool") }

// claudeHooks starts remit without a shell, and lets no call run that it could
// not decide.
func claudeHooks(p Environment) (all []listElement) {
	for _, e := range claudeEvents {
		var h, group entry
		h.set("type", "command")
		h.set("command", p.Command)
		h.set("args", []string{"hook", "claude-code"})
		h.set("timeout", e.timeout())
		if e.name == "PreToolUse" {
			h.set("onFailure", "block")
		}
		if e.tool() {
			group.set("matcher", "*")
		}
		group.set("hooks", []json.RawMessage{h.object()})
		all = append(all, listElement{Path: []string{"hooks", e.name}, Value: group.object()})
	}
	return all
}

func codexHooks(p Environment) (all []listElement) {
	for _, e := range codexEvents {
		var h, group entry
		h.set("type", "command")
		h.set("command", p.shellHook("codex", e.name == "PreToolUse"))
		h.set("timeout", e.timeout())
		if e.tool() {
			group.set("matcher", "*")
		}
		group.set("hooks", []json.RawMessage{h.object()})
		all = append(all, listElement{Path: []string{"hooks", e.name}, Value: group.object()})
	}
	return all
}

// geminiHooks has times in milliseconds. A matcher of a tool event is a regular
// expression.
func geminiHooks(p Environment) (all []listElement) {
	for _, e := range geminiEvents {
		var h, group entry
		h.set("name", "remit")
		h.set("type", "command")
		h.set("command", p.shellHook("gemini-cli", e.name == "BeforeTool"))
		h.set("timeout", e.timeout()*1000)
		if e.tool() {
			group.set("matcher", ".*")
		}
		group.set("hooks", []json.RawMessage{h.object()})
		all = append(all, listElement{Path: []string{"hooks", e.name}, Value: group.object()})
	}
	return all
}

func cursorHooks(p Environment) (all []listElement) {
	for _, e := range cursorEvents {
		var h entry
		h.set("command", p.shellHook("cursor", false))
		h.set("timeout", e.timeout())
		if e.name == "preToolUse" || e.name == "beforeShellExecution" {
			h.set("failClosed", true)
		}
		all = append(all, listElement{Path: []string{"hooks", e.name}, Value: h.object()})
	}
	return all
}

// shellHook returns the command line of a hook, for clients that start hooks
// with a shell. Some of them run the call if its hook fails in any way but with
// exit code 2. For these, guard turns each failure into that code, also that of
// a remit that is missing. The shell of the user can be any, so that sh does
// it.
func (p Environment) shellHook(client string, guard bool) string {
	path := shellWord(p.OS, p.Command)
	if !guard || p.OS == "windows" {
		return path + " hook " + client
	}
	return `sh -c '"$0" hook ` + client + ` || { [ $? = 2 ] || echo "remit failed, so the call does not run" >&2; exit 2; }' ` + path
}

const plainInShell = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:\\"

// shellWord quotes a path for the shell of the system.
func shellWord(system, path string) string {
	switch {
	case strings.Trim(path, plainInShell) == "" && (system == "windows" || !strings.Contains(path, "\\")):
		return path
	case system == "windows":
		return `"` + path + `"` // a path there has no quotes
	default:
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
}

// wholeFile is a source that consists of a text of remit's own.
func wholeFile(scope Scope, project, path, text string) source {
	return source{path: path, scope: scope, project: project, format: jsonFormat{}, content: text}
}

func claudeCommands(p Environment, scope Scope, project, dir string) (all []source) {
	command := shellWord(p.OS, p.Command)
	for name, text := range map[string]string{"undo": undoCommand, "log": logCommand, "diff": diffCommand} {
		text = strings.ReplaceAll(text, "REMIT", command)
		all = append(all, wholeFile(scope, project, filepath.Join(dir, "commands", "remit", name+".md"), text))
	}
	slices.SortFunc(all, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return all
}

func opencodeFile(p Environment, scope Scope, project, dir string) source {
	text := strings.ReplaceAll(opencodePlugin, `"REMIT"`, string(marshal(p.Command)))
	src := wholeFile(scope, project, filepath.Join(dir, "plugins", "remit.js"), text)
	src.tools = true
	return src
}
