package hooks

import (
	"encoding/json"
	"errors"
)

// decisionReply writes the answers of clients that read a decision at the top
// of the object: Gemini CLI and the plugin of opencode.
func decisionReply(e Event, a Answer) Reply {
	switch {
	case e.Moment == BeforeTool && a.Verdict != "":
		verdict := a.Verdict
		if verdict == Ask {
			verdict = Deny // neither client asks
		}
		out := object{"decision": verdict, "reason": a.Reason}
		if a.Input != nil && verdict == Allow {
			out["tool_input"] = a.Input
			out["hookSpecificOutput"] = object{"hookEventName": e.Name, "tool_input": a.Input}
		}
		return encode(out)
	case e.Moment == AfterTool && a.Failed != "":
		return encode(object{"decision": Deny, "reason": a.Failed})
	}
	return Reply{}
}

var geminiMoments = map[string]Moment{
	"SessionStart": SessionStarts, "BeforeAgent": PromptStarts, "BeforeTool": BeforeTool, "AfterTool": AfterTool, "AfterAgent": PromptEnds,
	"SessionEnd": SessionEnds,
}

func geminiCLI() Client {
	return Client{
		Name: "gemini-cli", Title: "Gemini CLI", FailsOpen: true,
		parse: func(raw json.RawMessage) (Event, error) {
			e, err := parseClaude(raw)
			if e.Moment = geminiMoments[e.Name]; e.Moment == "" {
				e.Moment = OtherMoment
			}
			e.Failed = e.Failed || failedOutput(e.Output)
			return e, err
		},
		reply: decisionReply,
		tools: map[string]toolKind{
			"run_shell_command": shellKind, "write_file": writeKind, "replace": editKind, "read_file": readKind, "read_many_files": readKind,
			"list_directory": searchKind, "glob": searchKind, "grep_search": searchKind, "search_file_content": searchKind,
			"web_fetch": fetchKind, "google_web_search": fetchKind, "write_todos": innerKind, "save_memory": otherKind, "ask_user": innerKind,
			"enter_plan_mode": innerKind, "exit_plan_mode": innerKind, "complete_task": innerKind, "activate_skill": innerKind,
		},
	}
}

// failedOutput reports whether a tool's response has an error.
func failedOutput(raw json.RawMessage) bool {
	var out struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(raw, &out) == nil && len(out.Error) > 0 && string(out.Error) != "null"
}

func opencode() Client {
	return Client{
		Name: "opencode", Title: "opencode",
		parse: parseClaude, reply: decisionReply,
		tools: map[string]toolKind{
			"bash": shellKind, "write": writeKind, "edit": editKind, "multiedit": editKind, "patch": editKind, "apply_patch": editKind,
			"read": readKind, "list": searchKind, "glob": searchKind, "grep": searchKind, "webfetch": fetchKind, "websearch": fetchKind, "codesearch": fetchKind,
			"todowrite": innerKind, "todoread": innerKind, "task": innerKind, "skill": innerKind, "question": innerKind, "invalid": innerKind, "lsp": searchKind,
		},
	}
}

// cursorEvent has the members of the events of Cursor.
type cursorEvent struct {
	Session string          `json:"conversation_id"`
	Prompt  string          `json:"generation_id"`
	Text    string          `json:"prompt"`
	Name    string          `json:"hook_event_name"`
	Folders []string        `json:"workspace_roots"`
	Dir     string          `json:"cwd"`
	Tool    string          `json:"tool_name"`
	Input   json.RawMessage `json:"tool_input"`
	Output  json.RawMessage `json:"tool_output"`
	Use     string          `json:"tool_use_id"`
}

var cursorMoments = map[string]Moment{
	"sessionStart": SessionStarts, "beforeSubmitPrompt": PromptStarts, "preToolUse": BeforeTool, "postToolUse": AfterTool,
	"postToolUseFailure": AfterTool, "stop": PromptEnds, "sessionEnd": SessionEnds,
}

func cursor() Client {
	return Client{
		Name: "cursor", Title: "Cursor", Asks: true, FailsOpen: true,
		parse: parseCursor, reply: cursorReply,
		tools: map[string]toolKind{
			"Shell": shellKind, "Write": writeKind, "Edit": editKind, "StrReplace": editKind, "Delete": editKind, "Read": readKind, "Grep": searchKind, "Glob": searchKind,
			"LS": searchKind, "WebFetch": fetchKind, "WebSearch": fetchKind, "Task": innerKind, "TodoWrite": innerKind,
		},
	}
}

func parseCursor(raw json.RawMessage) (Event, error) {
	var in cursorEvent
	if err := json.Unmarshal(raw, &in); err != nil {
		return Event{}, err
	}
	if in.Name == "" {
		return Event{}, errors.New("hook_event_name is missing")
	}
	e := Event{
		Name: in.Name, Moment: cursorMoments[in.Name], Session: in.Session, Prompt: in.Prompt, Text: in.Text, Dir: in.Dir,
		Use: in.Use, Tool: in.Tool, Input: in.Input, Output: in.Output, Failed: in.Name == "postToolUseFailure",
	}
	if e.Dir == "" && len(in.Folders) > 0 {
		e.Dir = in.Folders[0]
	}
	if e.Moment == "" {
		e.Moment = OtherMoment
	}
	return e, nil
}

func cursorReply(e Event, a Answer) Reply {
	if e.Moment != BeforeTool || a.Verdict == "" {
		return Reply{}
	}
	out := object{"permission": a.Verdict, "user_message": a.Reason, "agent_message": a.Reason}
	if a.Input != nil && a.Verdict != Deny {
		out["updated_input"] = a.Input
	}
	return encode(out)
}
