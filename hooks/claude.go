package hooks

import (
	"encoding/json"
	"errors"
	"regexp"
)

// claudeEvent has the members of the events of Claude Code, which Codex shares.
type claudeEvent struct {
	Session string          `json:"session_id"`
	Prompt  string          `json:"prompt_id"`
	Turn    string          `json:"turn_id"`
	Text    string          `json:"prompt"`
	Agent   string          `json:"agent_id"`
	Dir     string          `json:"cwd"`
	Name    string          `json:"hook_event_name"`
	Tool    string          `json:"tool_name"`
	Input   json.RawMessage `json:"tool_input"`
	Output  json.RawMessage `json:"tool_response"`
	Use     string          `json:"tool_use_id"`
	Error   string          `json:"error"`
	Behind  json.RawMessage `json:"background_tasks"`
	Mode    string          `json:"permission_mode"`
}

var claudeMoments = map[string]Moment{
	"SessionStart": SessionStarts, "UserPromptSubmit": PromptStarts, "PreToolUse": BeforeTool, "PostToolUse": AfterTool,
	"PostToolUseFailure": AfterTool, "Stop": PromptEnds, "SessionEnd": SessionEnds,
}

func parseClaude(raw json.RawMessage) (Event, error) {
	var in claudeEvent
	if err := json.Unmarshal(raw, &in); err != nil {
		return Event{}, err
	}
	if in.Name == "" {
		return Event{}, errors.New("hook_event_name is missing")
	}
	e := Event{
		Name: in.Name, Moment: claudeMoments[in.Name], Session: in.Session, Prompt: in.Prompt, Text: in.Text, Agent: in.Agent, Dir: in.Dir,
		Use: in.Use, Tool: in.Tool, Input: in.Input, Output: in.Output, Failed: in.Name == "PostToolUseFailure", Quiet: string(in.Behind) == "[]",
		Unasked: in.unasked(),
	}
	if e.Prompt == "" {
		e.Prompt = in.Turn
	}
	if e.Moment == "" {
		e.Moment = OtherMoment
	}
	if e.Failed && len(e.Output) == 0 && in.Error != "" {
		e.Output, _ = json.Marshal(in.Error) // a text always encodes
	}
	return e, nil
}

// editsFiles are the programs of a command that the mode acceptEdits can accept
// together with the edits.
var editsFiles = regexp.MustCompile(`\b(mkdir|touch|rm|rmdir|mv|cp|sed)\b`)

// unasked reports whether the mode can let this use pass without a question. In
// acceptEdits, the person answers about everything but files of the folder.
func (in claudeEvent) unasked() bool {
	switch in.Mode {
	case "bypassPermissions":
		return true
	case "acceptEdits":
		switch claudeCode().tools[in.Tool] {
		case writeKind, editKind:
			return true
		case shellKind:
			return editsFiles.Match(in.Input)
		default: // the person answers
		}
	}
	return false
}

// claudeReply writes the answers that Claude Code reads.
func claudeReply(e Event, a Answer) Reply {
	switch {
	case e.Moment == SessionStarts && a.Notice != "":
		return encode(object{"systemMessage": a.Notice})
	case e.Moment == BeforeTool && a.Verdict != "":
		out := object{"hookEventName": e.Name, "permissionDecision": a.Verdict, "permissionDecisionReason": a.Reason}
		if a.Input != nil && a.Verdict != Deny {
			out["updatedInput"] = a.Input
		}
		return encode(object{"hookSpecificOutput": out})
	case e.Moment == AfterTool && a.Failed != "":
		if e.Failed {
			return encode(object{"hookSpecificOutput": object{"hookEventName": e.Name, "additionalContext": a.Failed}})
		}
		return encode(object{"decision": "block", "reason": a.Failed})
	}
	return Reply{}
}

func claudeCode() Client {
	return Client{
		Name: "claude-code", Title: "Claude Code", Asks: true, Serial: true,
		parse: parseClaude, reply: claudeReply,
		tools: map[string]toolKind{
			"Bash": shellKind, "Write": writeKind, "Edit": editKind, "MultiEdit": editKind, "NotebookEdit": editKind,
			"Read": readKind, "Glob": searchKind, "Grep": searchKind, "LS": searchKind, "LSP": searchKind,
			"WebFetch": fetchKind, "WebSearch": fetchKind,
			"Task": innerKind, "Agent": innerKind, "TodoWrite": innerKind, "TaskCreate": innerKind, "TaskUpdate": innerKind, "TaskGet": innerKind,
			"TaskList": innerKind, "TaskOutput": innerKind, "BashOutput": innerKind, "TaskStop": innerKind, "KillShell": innerKind, "KillBash": innerKind,
			"ExitPlanMode": innerKind, "EnterPlanMode": innerKind, "AskUserQuestion": innerKind, "ToolSearch": innerKind, "Skill": innerKind,
		},
	}
}

func codex() Client {
	return Client{
		Name: "codex", Title: "Codex", FailsOpen: true,
		parse: parseClaude, reply: codexReply,
		tools: map[string]toolKind{
			"Bash": shellKind, "shell": shellKind, "apply_patch": editKind, "update_plan": innerKind, "view_image": readKind, "web_search": fetchKind,
		},
	}
}

// codexReply writes the answers that Codex reads: it knows a denial with a
// reason, and an allow only together with another input.
func codexReply(e Event, a Answer) Reply {
	switch {
	case e.Moment == BeforeTool && (a.Verdict == Deny || a.Verdict == Ask):
		return encode(object{"hookSpecificOutput": object{"hookEventName": e.Name, "permissionDecision": Deny, "permissionDecisionReason": a.Reason}})
	case e.Moment == BeforeTool && a.Input != nil:
		return encode(object{"hookSpecificOutput": object{"hookEventName": e.Name, "permissionDecision": Allow, "updatedInput": a.Input}})
	case e.Moment == AfterTool && a.Failed != "":
		return encode(object{"decision": "block", "reason": a.Failed})
	}
	return Reply{}
}
